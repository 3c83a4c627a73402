#!lua flags=no-writes,allow-oom
-- Compares runs with the places that their heads name, or the rows of one place with their runs:
-- each run is in all places where it belongs and in no other.
-- KEYS 1 meta
-- ARGV 1 sentinel 2 place: `run` for runs by id, a sorted set by name, `h:WORKER`, or `s:` for
--   sessions by id 3 first row 4 most rows (both only for sorted sets), or from 3 on the ids
-- Replies: number of rows, the heads of the readable runs (id, head, whether set aside), then for
--   each fault: kind, about, text, action, changes (kind, place, item, before, after each)
local place, out, heads = ARGV[2], {}, {}
local ends = {c = 'fin', x = 'can', f = 'dead'}
local function score(name, run) return redis.call('ZSCORE', T .. name, run) or '' end
local function fault(check, about, text, action, changes)
  local flat = {}
  for _, change in ipairs(changes) do
    for i = 1, 5 do flat[#flat + 1] = change[i] end
  end
  out[#out + 1] = {check, about, text, action, flat}
end
local function z(name, run, after) return {'z', name, run, score(name, run), after} end
-- What a repair relies on: the run is as it was, or is not there.
local function same(run, h)
  local rest = {}
  for _, field in ipairs({'s', 'e', 'n', 'v'}) do
    rest[#rest + 1] = {'h', 'r:' .. run, field, h and h[field] or '', h and h[field] or ''}
  end
  return rest
end
local function with(rest, ...)
  for _, change in ipairs({...}) do rest[#rest + 1] = change end
  return rest
end
local function unreadable(run)
  fault('unreadable', run, 'run ' .. run .. ' cannot be read', 'set it aside',
    {{'a', '', run, '', ''}})
end
local function exists(name) return redis.call('EXISTS', T .. name) == 1 end
local function has_parts(run)
  return exists('p:' .. run) or exists('j:' .. run) or exists('z:' .. run)
end
local function member(name, run, before, after) return {'s', name, run, before, after} end
local function order_of(session, run)
  local order = T .. 's:' .. session
  return redis.call('LPOS', order, run), redis.call('LINDEX', order, 0)
end
local function when_to_end(h)
  if not string.find('sqp', h.s) then return '' end
  local at = tonumber(h.deadline)
  if not h.t and h.expires ~= '' then at = math.min(at or 1e15, tonumber(h.expires)) end
  if h.x then at = 0 end
  return at and int(at) or ''
end
-- The places of a run that has no session, or apart from it: what is there, and what should be.
local function places(run, h, in_line)
  local want = {due = '', wak = '', prk = '', lse = '', exp = when_to_end(h)}
  local lane = 'q:' .. h.lane
  want[lane] = ''
  for _, name in pairs(ends) do want[name], want[name .. '.l'] = '', '' end
  if h.s == 's' then
    want.due = h.d
  elseif h.s == 'q' and not in_line then
    want[lane] = h.score
  elseif h.s == 'p' then
    want.prk, want.wak = h.updated, h.d or ''
  elseif h.s == 'r' then
    want.lse = int(clock() + (tonumber(redis.call('HGET', T .. 'm', 'lease')) or 0))
  elseif ends[h.s] then
    local is_last = h.session ~= '' and redis.call('HGET', T .. 'S:' .. h.session, 'last') == run
    want[ends[h.s] .. (is_last and '.l' or '')] = h.f
  end
  return want
end
local exact = {due = true, wak = true, exp = true}
local function compare(run, h, in_line)
  for name, after in pairs(places(run, h, in_line)) do
    local before = score(name, run)
    if before ~= '' and after == '' then
      fault('misplaced', run, 'run ' .. run .. ' is in ' .. name .. ' but its state is ' .. h.s,
        'remove that entry', with(same(run, h), {'z', name, run, before, ''}))
    elseif before == '' and after ~= '' then
      fault('missing', run, 'run ' .. run .. ' has the state ' .. h.s .. ' but is not in ' .. name,
        'put it back there', with(same(run, h), {'z', name, run, '', after}))
    elseif before ~= after and (exact[name] or name == 'q:' .. h.lane) then
      fault('misplaced', run, 'run ' .. run .. ' stands at ' .. before .. ' in ' .. name
        .. ', not at ' .. after, 'move it there',
        with(same(run, h), {'z', name, run, before, after}))
    end
  end
end
-- A question stands in the lists that its run and itself name, at the place that they name.
local function question(run, h, id, value)
  local lists = standing(h, value)
  if not next(lists) then
    fault('question', run, 'question ' .. id .. ' of run ' .. run .. ' cannot be read', '', {})
  end
  for name, at in pairs(lists) do
    local item = id .. ' ' .. run
    local before = score(name, item)
    if before ~= at then
      local where = before == '' and ' is not in ' .. name
        or ' stands at ' .. before .. ' in ' .. name .. ', not at ' .. at
      fault(before == '' and 'missing' or 'misplaced', run,
        'question ' .. id .. ' of run ' .. run .. where, 'put it there',
        with(same(run, h), {'z', name, item, before, at}))
    end
  end
end
local function lists(run, h)
  local names = {['ix'] = h.created}
  for tag in string.gmatch(h.g or '', '[^\n]+') do names['t:' .. tag] = h.created end
  if h.session ~= '' then
    names['x:' .. h.session] = h.created
    if score('sx', h.session) == '' then
      fault('session', h.session, 'session ' .. h.session .. ' is on no list', 'put it on the list',
        {z('sx', h.session, '0')})
    end
  end
  for name, at in pairs(names) do
    if score(name, run) == '' then
      fault('missing', run, 'run ' .. run .. ' is not in ' .. name, 'put it back there',
        with(same(run, h), {'z', name, run, '', at}))
    end
  end
  local open = h.Q and redis.call('HGETALL', T .. 'o:' .. run) or {}
  for i = 1, #open, 2 do question(run, h, open[i], open[i + 1]) end
end
local function held(run, h)
  local key = 'h:' .. h.worker
  if redis.call('SISMEMBER', T .. key, run) == 0 then
    fault('missing', run, 'run ' .. run .. ' is not among those of its worker ' .. h.worker,
      'put it back there', with(same(run, h), member(key, run, '', '1')))
  end
end
-- Whether the run waits behind another of its session.
local function line(run, h)
  if h.session == '' then return false end
  local at, first = order_of(h.session, run)
  local belongs = string.find('qrp', h.s)
  if belongs and not at then
    fault('missing', run, 'run ' .. run .. ' is not in the order of session ' .. h.session,
      'put it at its end', with(same(run, h), {'l', 's:' .. h.session, run, '', '1'}))
  end
  return (at or first) and first ~= run
end
local function parts(run, h)
  local length = redis.call('LLEN', T .. 'j:' .. run)
  local text
  if not exists('p:' .. run) then text = 'has no payload'
  elseif length ~= tonumber(h.len) then text = 'counts ' .. h.len .. ' events, there are ' .. length
  elseif h.snap ~= '0' and not exists('z:' .. run) then text = 'has no snapshot' end
  if not text or (h.s == 'f' and h.r == 'undecodable') then return true end
  local is_held = h.s == 'r'
  fault('parts', run, 'run ' .. run .. ' ' .. text, is_held and '' or 'set it aside',
    with(same(run, h), {'A', '', run, '', ''}))
  return is_held
end
local function inspect(run)
  local good, h, flat = look(run)
  local is_aside = score('bad', run) ~= ''
  if good and h then
    heads[#heads + 1] = {run, flat, is_aside and '1' or ''}
    if h.s == 'r' and not h.worker then return unreadable(run) end
    if is_aside then
      local is_whole = redis.call('LLEN', T .. 'j:' .. run) == tonumber(h.len)
        and exists('p:' .. run) and (h.snap == '0' or exists('z:' .. run))
      if not is_whole then return end
      fault('misplaced', run, 'run ' .. run .. ' was set aside and can be read', 'take it back',
        with(same(run, h), z('bad', run, '')))
    elseif not parts(run, h) then
      return
    end
    compare(run, h, line(run, h))
    lists(run, h)
    if h.s == 'r' then held(run, h) end
  elseif not good then
    if not is_aside then unreadable(run) end
  elseif score('ix', run) ~= '' then
    fault('orphan', run, 'run ' .. run .. ' is in ix and does not exist', 'remove that entry',
      with(same(run), z('ix', run, '')))
  elseif has_parts(run) and not is_aside then
    fault('orphan', run, 'there are parts of run ' .. run .. ', which has no head', 'set it aside',
      with(same(run), {'z', 'bad', run, '', int(clock())}))
  end
end
-- A row of a place whose run is not there, or belongs to another place of that kind.
local function row(name, item)
  local run = string.match(item, '[^ ]+$') or item
  local good, h = look(run)
  local function drop(text, rest)
    fault('orphan', run, 'run ' .. run .. ' ' .. text, 'remove that entry',
      with(rest, z(name, item, '')))
  end
  if name == 'bad' then
    if good and not h and not has_parts(run) then
      drop('is in bad and does not exist', same(run))
    elseif not good or not h then
      fault('aside', run, 'run ' .. run .. ' is set aside: it cannot be read', '', {})
    end
  elseif not good then
    if score('bad', run) == '' then unreadable(run) end
  elseif not h then
    drop('is in ' .. name .. ' and does not exist', same(run))
  elseif score('ix', run) == '' then
    inspect(run)
  elseif string.find(name, '^o[uod]:') then
    local id = string.match(item, '^[^ ]+')
    local value = redis.call('HGET', T .. 'o:' .. run, id)
    if not value or not standing(h, value)[name] then
      drop('has no question ' .. id .. ' that belongs in ' .. name, same(run, h))
    end
  elseif string.sub(name, 1, 2) == 'q:' and name ~= 'q:' .. h.lane then
    drop('is in ' .. name .. ', which is not its lane', same(run, h))
  elseif string.sub(name, 1, 2) == 't:' then
    local tag = '\n' .. string.sub(name, 3) .. '\n'
    if not string.find('\n' .. (h.g or '') .. '\n', tag, 1, true) then
      drop('is in ' .. name .. ', which it does not have', same(run, h))
    end
  end
end
local function session(id)
  local runs, open = redis.call('ZRANGE', T .. 'x:' .. id, 0, 9999), 0
  local graph
  for _, run in ipairs(runs) do
    local good, h = look(run)
    if good and not h then
      fault('orphan', run, 'run ' .. run .. ' is in session ' .. id .. ' and does not exist',
        'remove that entry', with(same(run), z('x:' .. id, run, '')))
    elseif h then
      graph = h.graph
      if string.find('sqrp', h.s) then open = open + 1 end
    end
  end
  for _, run in ipairs(redis.call('LRANGE', T .. 's:' .. id, 0, 9999)) do
    local good, h = look(run)
    if not good or not h or ends[h.s] or h.session ~= id then
      local why = h and ' stands in the order of session ' or ' cannot be read and is in session '
      fault('session', run, 'run ' .. run .. why .. id .. ' in vain', 'take it out of the order',
        with(good and same(run, h) or {}, {'l', 's:' .. id, run, '1', ''}))
    end
  end
  local record = redis.call('HMGET', T .. 'S:' .. id, 'graph', 'open', 'last')
  local function correct(field, after)
    local before = redis.call('HGET', T .. 'S:' .. id, field) or ''
    fault('session', id, 'session ' .. id .. ' has ' .. field .. ' "' .. before .. '", not "'
      .. after .. '"', 'correct it', {{'h', 'S:' .. id, field, before, after}})
  end
  if #runs == 0 and not record[1] then
    if score('sx', id) ~= '' then
      fault('orphan', id, 'session ' .. id .. ' is on the list and does not exist',
        'remove that entry', {z('sx', id, '')})
    end
    return
  end
  if not record[1] and graph then correct('graph', graph) end
  if #runs < 10000 and (record[2] or '') ~= int(open) then correct('open', int(open)) end
  if record[3] and not exists('r:' .. record[3]) then correct('last', '') end
end
local rows = {}
if place == 'run' then
  for i = 3, #ARGV do inspect(ARGV[i]) end
elseif place == 's:' then
  for i = 3, #ARGV do session(ARGV[i]) end
elseif string.sub(place, 1, 2) == 'h:' then
  for _, run in ipairs(redis.call('SMEMBERS', T .. place)) do
    local good, h = look(run)
    if good and not (h and h.s == 'r' and 'h:' .. h.worker == place) then
      fault('orphan', run, 'run ' .. run .. ' is in ' .. place .. ', who does not hold it',
        'remove that entry', with(same(run, h), member(place, run, '1', '')))
    end
  end
else
  rows = redis.call('ZRANGE', T .. place, ARGV[3], int(ARGV[3] + ARGV[4] - 1))
  for _, item in ipairs(rows) do
    if place == 'ix' then inspect(item) else row(place, item) end
  end
end
return {int(#rows), heads, unpack(out)}

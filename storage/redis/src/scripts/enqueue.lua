#!lua
-- Stores runs, or none when one is refused and no part is wanted. Every item is judged before the
-- first write, and sees the items before it.
-- KEYS 1 meta
-- ARGV 1 sentinel 2 partial: 1 or 0, then 16 for each run: id, request digest, graph, queue,
--   session, if busy (e r i b), fingerprint, priority, start, expires, deadline (`+ms`
--   from now, `@ms` at, or empty), most that may wait, key, tags, payload hash, payload
-- Replies: now, then for each item C state | R state | E run state | K run | X | B run question
--   | G graph | Q depth
local now = clock()
local new, keys, graphs, active, depths, wished = {}, {}, {}, {}, {}, {}
local function at(text)
  local value = tonumber(string.sub(text, 2))
  if not value then return nil end
  return math.min(string.sub(text, 1, 1) == '+' and now + value or value, 9e15)
end
local function question(run)
  local found, first = '', nil
  local open = redis.call('HGETALL', T .. 'o:' .. run)
  for i = 1, #open, 2 do
    local place = string.match(open[i + 1], '^%d+') .. ' ' .. open[i]
    if not first or before(place, first) then found, first = open[i], place end
  end
  return found
end
local function judge(i)
  local run, request, graph, queue = ARGV[i], ARGV[i + 1], ARGV[i + 2], ARGV[i + 3]
  local session, key = ARGV[i + 4], ARGV[i + 12]
  local there = new[run] or redis.call('HMGET', T .. 'r:' .. run, 's', 'q')
  if there[1] and known(there[2] or '', request) then return {'R', there[1]} end
  if key ~= '' then
    local value = keys[key] or redis.call('GET', T .. 'k:' .. key)
    if value then
      local other, hash, ended = string.match(value, '^([^|]+)|([^|]*)|(.*)$')
      if hash ~= ARGV[i + 14] then return {'K', other} end
      local state = new[other] and new[other][1] or redis.call('HGET', T .. 'r:' .. other, 's')
      return {'E', other, state or ended}
    end
  end
  if there[1] then return {'X'} end
  local wish
  if session ~= '' then
    local belongs = graphs[session] or redis.call('HGET', T .. 'S:' .. session, 'graph')
    if belongs and belongs ~= graph then return {'G', belongs} end
    local busy = active[session] or redis.call('LINDEX', T .. 's:' .. session, 0)
    active[session] = busy
    if not graphs[session] then typed('x:' .. session, 'zset') end
    if busy and ARGV[i + 5] == 'r' then return {'B', busy, question(busy)} end
    wish = busy and ARGV[i + 5] ~= 'e' and {busy, ARGV[i + 5]}
  end
  local waiting = depths[queue] or tonumber(redis.call('HGET', T .. 'c', queue) or 0)
  if waiting >= tonumber(ARGV[i + 11]) then return {'Q', int(waiting)} end
  for tag in string.gmatch(ARGV[i + 13], '[^\n]+') do typed('t:' .. tag, 'zset') end
  local start = at(ARGV[i + 8])
  local state = start > now and 's' or 'q'
  depths[queue], new[run] = waiting + 1, {state, request}
  if key ~= '' then keys[key] = run .. '|' .. ARGV[i + 14] .. '|' end
  if session ~= '' then
    graphs[session] = graph
    if state == 'q' and not active[session] then active[session] = run end
  end
  if wish then
    local was = new[wish[1]] or redis.call('HMGET', T .. 'r:' .. wish[1], 's', 'q')
    local asked = wished[wish[1]] or redis.call('HGET', T .. 'r:' .. wish[1], 'x')
    wished[wish[1]] = (asked == 'a' or asked == 'b') and asked or wish[2]
    wish[3] = was[1]
  end
  return {'C', state, wish = wish, start = start, i = i}
end
local out, accepted, refused = {int(now)}, {}, false
for i = 3, #ARGV, 16 do
  local verdict = judge(i)
  out[#out + 1] = verdict
  if verdict[1] == 'C' then accepted[#accepted + 1] = verdict end
  refused = refused or not string.find('CRE', verdict[1], 1, true)
end
if #accepted == 0 or (refused and ARGV[2] == '0') then return out end
local order = redis.call('INCRBY', T .. 'n', #accepted) - #accepted
local tokens, waits, index = {}, {}, {}
for n, verdict in ipairs(accepted) do
  local i, state = verdict.i, verdict[2]
  local run, graph, queue, session = ARGV[i], ARGV[i + 2], ARGV[i + 3], ARGV[i + 4]
  local expires, deadline = at(ARGV[i + 9]), at(ARGV[i + 10])
  local lane = queue .. '|' .. graph .. '|' .. ARGV[i + 6]
  local score = int((9 - ARGV[i + 7]) * 1e13 + order + n)
  local fields = {'s', state, 'e', '0', 'n', '0:', 'v', int(now) .. '|0|0', 'c', '0|0|0',
    'q', ARGV[i + 1], 'a', graph .. '|' .. queue .. '|' .. session,
    'b', ARGV[i + 7] .. '|' .. int(order + n) .. '|' .. int(now) .. '|'
      .. (expires and int(expires) or '') .. '|' .. (deadline and int(deadline) or ''),
    'h', ARGV[i + 14]}
  local function also(name, value)
    fields[#fields + 1] = name
    fields[#fields + 1] = value
  end
  if state == 's' then also('d', int(verdict.start)) end
  if ARGV[i + 6] ~= '' then also('l', ARGV[i + 6]) end
  if ARGV[i + 12] ~= '' then also('k', ARGV[i + 12]) end
  if ARGV[i + 13] ~= '' then also('g', ARGV[i + 13]) end
  redis.call('HSET', T .. 'r:' .. run, unpack(fields))
  redis.call('SET', T .. 'p:' .. run, ARGV[i + 15])
  index[#index + 1] = int(now)
  index[#index + 1] = run
  if ARGV[i + 12] ~= '' then
    redis.call('SET', T .. 'k:' .. ARGV[i + 12], run .. '|' .. ARGV[i + 14] .. '|')
  end
  for tag in string.gmatch(ARGV[i + 13], '[^\n]+') do
    redis.call('ZADD', T .. 't:' .. tag, int(now), run)
  end
  waits[queue] = (waits[queue] or 0) + 1
  local limit = math.min(expires or 1e15, deadline or 1e15)
  if limit < 1e15 then redis.call('ZADD', T .. 'exp', int(limit), run) end
  local place = 1
  if session ~= '' then
    if redis.call('HSETNX', T .. 'S:' .. session, 'graph', graph) == 1 then
      redis.call('ZADD', T .. 'sx', 0, session)
    end
    redis.call('HINCRBY', T .. 'S:' .. session, 'open', 1)
    redis.call('ZADD', T .. 'x:' .. session, int(now), run)
    if state == 'q' then place = redis.call('RPUSH', T .. 's:' .. session, run) end
  end
  if verdict.wish then
    local busy = verdict.wish[1]
    redis.call('HSET', T .. 'r:' .. busy, 'x', wished[busy])
    if verdict.wish[3] ~= 'r' then redis.call('ZADD', T .. 'exp', 0, busy) end
  end
  if state == 's' then
    redis.call('ZADD', T .. 'due', int(verdict.start), run)
  elseif place == 1 then
    redis.call('ZADD', T .. 'q:' .. lane, score, run)
    tokens[lane] = (tokens[lane] or 0) + 1
  end
  if not tokens[lane .. '?'] then
    tokens[lane .. '?'] = 0
    redis.call('SADD', T .. 'l', lane)
  end
end
for first = 1, #index, 1000 do
  redis.call('ZADD', T .. 'ix', unpack(index, first, math.min(first + 999, #index)))
end
for queue, count in pairs(waits) do depth(queue, count) end
for lane, count in pairs(tokens) do
  if count > 0 then wake(lane, count) end
end
return out

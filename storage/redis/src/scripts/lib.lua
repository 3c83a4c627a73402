#!lua
-- What several scripts share. A block begins with `--@ NAME`; the loader puts the blocks that a
-- script names, and those that they name, in front of it. `T` is the prefix of all keys.
-- KEYS 1 meta: the namespace's sentinel; its name gives the prefix
-- ARGV 1 sentinel: what it held when this process last saw it
-- Replies: RESET as an error, when the sentinel is another or gone
--@ corrupt
local function corrupt(run, why) error({err = 'CORRUPT ' .. run .. '|' .. why}) end
--@ num
-- A stored count: digits only, below 2^53, or nothing is done.
local function num(text, run, name)
  if not text or #text > 16 or not string.find(text, '^%d+$') then
    corrupt(run, name .. ' is no number')
  end
  local value = tonumber(text)
  if value > 9007199254740991 then corrupt(run, name .. ' is too large') end
  return value
end
--@ gone
-- The answer when a run's head is missing or cut: the store was reset, or the run is damaged.
local function gone(run)
  if redis.call('GET', KEYS[1]) ~= ARGV[1] then
    return redis.error_reply('RESET the namespace is not the one it was')
  end
  corrupt(run, 'its header is missing or cut')
end
--@ typed
-- Stops before the first write when a key has another type than the layout gives it.
local function typed(name, kind)
  local is = redis.call('TYPE', T .. name).ok
  if is ~= kind and is ~= 'none' then
    error({err = 'WRONGTYPE ' .. name .. ' is a ' .. is .. ' and not a ' .. kind})
  end
end
--@ int
local function int(value) return string.format('%d', value) end
--@ before
-- Whether one text comes before another byte by byte; `<` would ask the server's locale.
local function before(a, b)
  for i = 1, math.min(#a, #b) do
    local x, y = string.byte(a, i), string.byte(b, i)
    if x ~= y then return x < y end
  end
  return #a < #b
end
--@ clock
-- The store's time in ms, and in µs.
local function clock()
  local t = redis.call('TIME')
  return t[1] * 1000 + math.floor(t[2] / 1000), t[1] * 1000000 + t[2]
end
--@ lane_of
-- The lane of a run that is pinned to a structure, or to none.
local function lane_of(h, pin) return h.queue .. '|' .. h.graph .. '|' .. (pin or '') end
--@ head
-- The head of a run, checked and taken apart, and as it is stored; nothing when there is none.
local function head(run)
  local flat = redis.call('HGETALL', T .. 'r:' .. run)
  if #flat == 0 then return nil end
  local h = {}
  for i = 1, #flat, 2 do h[flat[i]] = flat[i + 1] end
  if not h.s or not string.find(h.s, '^[sqrpcfx]$') then corrupt(run, 'its state is none') end
  h.epoch = num(h.e, run, 'its epoch')
  h.graph, h.queue, h.session = string.match(h.a or '', '^([^|]+)|([^|]+)|([^|]*)$')
  h.prio, h.order, h.created, h.expires, h.deadline =
    string.match(h.b or '', '^(%d)|(%d+)|(%d+)|(%d*)|(%d*)$')
  h.updated, h.snap, h.tail = string.match(h.v or '', '^(%d+)|(%d+)|(%d+)$')
  h.claims, h.row, h.life = string.match(h.c or '', '^(%d+)|(%d+)|(%d+)$')
  h.len, h.hash = string.match(h.n or '', '^(%d+):(%x*)$')
  if not (h.graph and h.prio and h.updated and h.claims and h.len) then
    corrupt(run, 'its header is cut or altered')
  end
  h.lane, h.score = lane_of(h, h.l), int((9 - h.prio) * 1e13 + h.order)
  h.worker = h.s == 'r' and string.match(h.w or '', '^[^|]+') or nil
  return h, flat
end
--@ known
-- Whether the request is among the last ones of the run.
local function known(requests, request)
  local at = string.find(requests, request, 1, true)
  while at and at % 8 ~= 1 do at = string.find(requests, request, at + 1, true) end
  return at ~= nil
end
--@ tell
-- Tells those who follow the run, if anybody ever did.
local function tell(run, is_followed, what)
  if is_followed then redis.call('PUBLISH', T .. 'f:' .. run, what) end
end
--@ wake
-- Leaves a token for each run that came to a lane; at most 64 wait.
local function wake(lane, count)
  local key = T .. 'w:' .. lane
  local room = 64 - redis.call('LLEN', key)
  for _ = 1, math.min(room, count) do redis.call('RPUSH', key, '1') end
end
--@ turn
-- What a run that becomes queued finds in its session: `lane` it is its turn, `wait` it stands in
-- the order, `join` it has to go to the end, `first` it has to and is alone.
local function turn(run, h)
  if h.session == '' then return 'lane' end
  local order = T .. 's:' .. h.session
  local active = redis.call('LINDEX', order, 0)
  if active == run then return 'lane' end
  if not active then return 'first' end
  return redis.call('LPOS', order, run) and 'wait' or 'join'
end
--@ enter
-- Makes the run claimable, or puts it in its session's order, as `turn` said.
local function enter(run, h, what)
  if what == 'join' or what == 'first' then redis.call('RPUSH', T .. 's:' .. h.session, run) end
  if what == 'lane' or what == 'first' then
    redis.call('ZADD', T .. 'q:' .. h.lane, h.score, run)
    wake(h.lane, 1)
  end
end
--@ depth
-- Counts the runs of a queue that wait.
local function depth(queue, by) redis.call('HINCRBY', T .. 'c', queue, by) end
--@ watch
-- Puts a run without an owner on the list of those that must end: at its limit, or now when it is
-- to be cancelled.
local function watch(run, h)
  local at = tonumber(h.deadline)
  if not h.t and h.expires ~= '' then at = math.min(at or 1e15, tonumber(h.expires)) end
  if h.x then at = 0 end
  if at then redis.call('ZADD', T .. 'exp', int(at), run) end
end
--@ disown
-- Takes the lease away.
local function disown(run, worker)
  redis.call('ZREM', T .. 'lse', run)
  redis.call('SREM', T .. 'h:' .. worker, run)
end
--@ standing
-- The lists in which a stored question stands, with its score in each: in one for everybody's
-- questions or for those of somebody, and in those of its graph, of all whom it asks, and of its
-- run's tags. One without a deadline stands in the `ou` of a list by opening, one with a deadline
-- in the `oo` by opening and in the `od` by deadline. Nothing for one that is cut or altered.
local function standing(h, value)
  local at, deadline, asked =
    string.match(value, '^(%d+)\n[^\n]*\n[^\n]*\n[^\n]*\n(%d*)\n([^\n]*)\n')
  local lists = {}
  local function add(list)
    if deadline == '' then
      lists['ou:' .. list] = at
    else
      lists['oo:' .. list], lists['od:' .. list] = at, deadline
    end
  end
  if not at then return lists end
  add(asked == '' and 'all' or 'some')
  add('g:' .. h.graph)
  for list in string.gmatch(asked, '[^ ]+') do add(list) end
  for tag in string.gmatch(h.g or '', '[^\n]+') do add('t:' .. tag) end
  return lists
end
--@ aside
-- Puts a run that cannot be read aside: out of every place that leads to it, so that it stops
-- nobody, while all that is stored of it stays. `counted`: the queue in which it was found.
local function aside(run, now, counted)
  local function has(name, kind) return redis.call('TYPE', T .. name).ok == kind end
  local v = has('r:' .. run, 'hash')
    and redis.call('HMGET', T .. 'r:' .. run, 's', 'a', 'l', 'w', 'g') or {}
  local graph, queue, session = string.match(v[2] or '', '^([^|]+)|([^|]+)|([^|]*)$')
  local worker = string.match(v[4] or '', '^[^|]+')
  local order = session and session ~= '' and 's:' .. session
  local is_first, second, after, good = false, nil, nil, false
  if order and has(order, 'list') then
    local line = redis.call('LRANGE', T .. order, 0, 1)
    is_first, second = line[1] == run, line[2]
    if is_first and second then good, after = pcall(head, second) end
  else
    order = nil
  end
  local open = graph and has('o:' .. run, 'hash') and redis.call('HGETALL', T .. 'o:' .. run) or {}
  -- All is read; now write.
  for i = 1, #open, 2 do
    for list in pairs(standing({graph = graph, g = v[5]}, open[i + 1])) do
      if has(list, 'zset') then redis.call('ZREM', T .. list, open[i] .. ' ' .. run) end
    end
  end
  for _, name in ipairs({'due', 'wak', 'lse', 'prk', 'exp'}) do
    redis.call('ZREM', T .. name, run)
  end
  if queue then
    local lane = lane_of({queue = queue, graph = graph}, v[3])
    if redis.call('ZREM', T .. 'q:' .. lane, run) == 1 then counted = queue end
    if v[1] == 's' or v[1] == 'q' then counted = queue end
  end
  if counted and tonumber(redis.call('HGET', T .. 'c', counted) or 0) > 0 then
    depth(counted, -1)
  end
  if worker and has('h:' .. worker, 'set') then redis.call('SREM', T .. 'h:' .. worker, run) end
  if order and redis.call('LREM', T .. order, 1, run) == 1 then
    if has('S:' .. session, 'hash') then redis.call('HINCRBY', T .. 'S:' .. session, 'open', -1) end
    if good and after and after.s == 'q' then
      redis.call('ZADD', T .. 'q:' .. after.lane, after.score, second)
      wake(after.lane, 1)
    end
  end
  redis.call('ZADD', T .. 'bad', int(now), run)
end
--@ nextup
-- The run whose turn it is when `run` leaves its session's order, with its head: none when it is
-- damaged.
local function nextup(run, h)
  if h.session == '' then return nil end
  -- Read here, so that a session of another type stops the caller before it writes.
  h.former = redis.call('HGET', T .. 'S:' .. h.session, 'last')
  local order = redis.call('LRANGE', T .. 's:' .. h.session, 0, 1)
  if order[1] ~= run or not order[2] then return nil end
  local good, after = pcall(head, order[2])
  if not good or not after then return order[2] end
  if after.s ~= 'q' then return nil end
  return order[2], after
end
--@ leave
-- Takes an ended run out of its session; `after` is what `nextup` said. `last`: it is the
-- session's last from now on, so the one before it may be pruned.
local function leave(run, h, is_last, after, after_head)
  redis.call('LREM', T .. 's:' .. h.session, 1, run)
  redis.call('HINCRBY', T .. 'S:' .. h.session, 'open', -1)
  if is_last then
    local former = h.former
    redis.call('HSET', T .. 'S:' .. h.session, 'last', run)
    local old = former and former ~= run and redis.call('HMGET', T .. 'r:' .. former, 's', 'f')
    local ended = old and ({c = 'fin', x = 'can', f = 'dead'})[old[1]]
    if ended then
      redis.call('ZREM', T .. ended .. '.l', former)
      redis.call('ZADD', T .. ended, old[2], former)
    end
  end
  if after_head then
    redis.call('ZADD', T .. 'q:' .. after_head.lane, after_head.score, after)
    wake(after_head.lane, 1)
  elseif after then
    aside(after, (clock()))
  end
end
--@ settle
-- Puts an ended run where ended runs are.
local function settle(run, state, now, is_last)
  local ended = ({c = 'fin', x = 'can', f = 'dead'})[state]
  redis.call('ZADD', T .. ended .. (is_last and '.l' or ''), now, run)
end
--@ note
-- Notes what becomes of a question: its stored form from now on, or none when it closes. Before
-- the first write; `post` writes it.
local function note(notes, h, id, known, value)
  local change = notes[id]
  if not change then
    change = {was = known and standing(h, known) or {}}
    notes[id] = change
  end
  change.value, change.is = value, value and standing(h, value) or {}
  for list in pairs(change.was) do typed(list, 'zset') end
  for list in pairs(change.is) do typed(list, 'zset') end
end
--@ show
-- Notes that a question opens, or is shown anew: then it keeps its time. Seven arguments from `i`
-- on: id, gate, hash of the arguments, votes, deadline, who is asked, body.
local function show(notes, run, h, now, i)
  local known = redis.call('HGET', T .. 'o:' .. run, ARGV[i])
  local value = table.concat({known and string.match(known, '^%d+') or now, ARGV[i + 2],
    ARGV[i + 1], ARGV[i + 3], ARGV[i + 4], ARGV[i + 5], ARGV[i + 6]}, '\n')
  note(notes, h, ARGV[i], known, value)
end
--@ close
-- Notes that a question closes.
local function close(notes, run, h, id)
  note(notes, h, id, redis.call('HGET', T .. 'o:' .. run, id))
end
--@ hush
-- Notes that all questions of a run close. Its head says whether it ever had some.
local function hush(run, h)
  local notes = {}
  local open = h.Q and redis.call('HGETALL', T .. 'o:' .. run) or {}
  for i = 1, #open, 2 do note(notes, h, open[i], open[i + 1]) end
  return notes
end
--@ post
-- Writes what was noted of a run's questions.
local function post(notes, run)
  for id, change in pairs(notes) do
    local item = id .. ' ' .. run
    if change.value then
      redis.call('HSET', T .. 'o:' .. run, id, change.value)
    else
      redis.call('HDEL', T .. 'o:' .. run, id)
    end
    for list in pairs(change.was) do
      if not change.is[list] then redis.call('ZREM', T .. list, item) end
    end
    for list, at in pairs(change.is) do
      if change.was[list] ~= at then redis.call('ZADD', T .. list, at, item) end
    end
  end
end
--@ silence
-- Deletes the questions and the answers of a run, as `hush` noted.
local function silence(run, h, notes)
  if not h.i and not h.Q then return end
  redis.call('HDEL', T .. 'r:' .. run, 'i', 'Q')
  post(notes, run)
  redis.call('DEL', T .. 'o:' .. run, T .. 'i:' .. run)
end
--@ stray
-- Takes an entry out of an index in which its run does not belong. One without a run is noted.
local function stray(run, h, name, now)
  redis.call('ZREM', T .. name, run)
  if not h then redis.call('ZADD', T .. 'bad', int(now), run) end
end
--@ look
-- Reads a run without failing: false when it is damaged, else true, its head as `head` has it, and
-- what `read` says of it.
local function look(run, read)
  local good, h, flat = pcall(head, run)
  if not good then return false end
  if not h or not read then return true, h, flat end
  local is_read, a, b = pcall(read, run, h, flat)
  if not is_read then return false end
  return true, h, flat, a, b
end
--@ fire
-- Queues the runs whose time has come.
local function fire(now, max)
  local fired = 0
  for _, name in ipairs({'due', 'wak'}) do
    local due = redis.call('ZRANGE', T .. name, '-inf', now, 'BYSCORE', 'LIMIT', 0, max - fired)
    for _, run in ipairs(due) do
      local good, h, _, what = look(run, turn)
      if not good then
        aside(run, now)
        redis.call('ZREM', T .. name, run)
      elseif h and (h.s == 's' or h.s == 'p') then
        redis.call('ZREM', T .. name, run)
        if h.s == 'p' then
          redis.call('ZREM', T .. 'prk', run)
          depth(h.queue, 1)
        end
        redis.call('HSET', T .. 'r:' .. run, 's', 'q', 'v', now .. '|' .. h.snap .. '|' .. h.tail)
        enter(run, h, what)
        tell(run, h.F, 'q')
        fired = fired + 1
      else
        stray(run, h, name, now)
      end
    end
  end
  return fired
end
--@ lose
-- Takes a run from a worker that is gone; `what` is what `turn` said.
local function lose(run, h, now, evidence, delays, what)
  local delay = tonumber(delays[math.min(math.max(tonumber(h.row), 1), #delays)] or 0)
  local until_ms = int(now + delay)
  local since = string.match(h.w or '', '|(%d+)$') or '0'
  local loss = '{"worker":"' .. h.worker .. '","epoch":' .. h.e .. ',"claimed_at_ms":' .. since
    .. ',"lost_at_ms":' .. int(now) .. ',"evidence":' .. evidence .. '}'
  disown(run, h.worker)
  redis.call('HSET', T .. 'r:' .. run, 's', delay > 0 and 's' or 'q', 'o', '', 'd', until_ms,
    'v', int(now) .. '|' .. h.snap .. '|' .. h.tail, 'y', h.y and h.y .. ',' .. loss or loss)
  depth(h.queue, 1)
  watch(run, h)
  if delay > 0 then redis.call('ZADD', T .. 'due', until_ms, run) else enter(run, h, what) end
  tell(run, h.F, 'l')
end
--@ grab
-- All that a worker needs of a run, read before the claim: the reply's parts and their bytes.
local function grab(run, h, flat)
  local payload = redis.call('GET', T .. 'p:' .. run) or ''
  local snapshot = h.claims ~= '0' and redis.call('GET', T .. 'z:' .. run)
  local journal = h.len ~= '0' and redis.call('LRANGE', T .. 'j:' .. run, h.snap, -1) or {}
  local inbox = h.i and redis.call('HGETALL', T .. 'i:' .. run) or {}
  local last = h.session ~= '' and redis.call('HGET', T .. 'S:' .. h.session, 'last')
  local bytes = #payload + (snapshot and #snapshot or 0) + h.tail
  return {run, flat, false, payload, snapshot, journal, inbox, last}, bytes
end
--@ take
-- Gives a run to a worker: a new pair, and the counters that only an orderly end takes back.
-- Where the run was is the caller's business.
local function take(run, h, reply, now, us, worker, nonce)
  local changes = {'s', 'r', 'e', int(math.max(h.epoch + 1, us)), 'o', nonce,
    'w', worker .. '|' .. int(now), 'v', int(now) .. '|' .. h.snap .. '|' .. h.tail,
    'c', int(h.claims + 1) .. '|' .. int(h.row + 1) .. '|' .. int(h.life + 1)}
  if not h.t then
    changes[#changes + 1] = 't'
    changes[#changes + 1] = int(now)
  end
  if h.x or h.expires ~= '' or h.deadline ~= '' then redis.call('ZREM', T .. 'exp', run) end
  redis.call('HSET', T .. 'r:' .. run, unpack(changes))
  tell(run, h.F, 'r')
  reply[3] = changes
end
--@ longest
-- Remembers the longest lease that was ever given.
local function longest(lease)
  if tonumber(redis.call('HGET', T .. 'm', 'lease') or 0) < lease then
    redis.call('HSET', T .. 'm', 'lease', lease)
  end
end
--@ whole
-- Stops when a key that goes with a run is of another type than it should be.
local function whole(run, h)
  typed('ix', 'zset')
  for tag in string.gmatch(h.g or '', '[^\n]+') do typed('t:' .. tag, 'zset') end
  if h.session ~= '' then typed('x:' .. h.session, 'zset') end
end
--@ forget
-- Deletes an ended run; its idempotency key lives on until `key_until`.
local function forget(run, h, now, key_ms)
  local ended = ({c = 'fin', x = 'can', f = 'dead'})[h.s]
  redis.call('ZREM', T .. ended, run)
  redis.call('ZREM', T .. ended .. '.l', run)
  redis.call('ZREM', T .. 'ix', run)
  for tag in string.gmatch(h.g or '', '[^\n]+') do redis.call('ZREM', T .. 't:' .. tag, run) end
  if h.session ~= '' then redis.call('ZREM', T .. 'x:' .. h.session, run) end
  if h.k then
    local left = tonumber(h.created) + key_ms - now
    if left > 0 then
      redis.call('SET', T .. 'k:' .. h.k, run .. '|' .. h.h .. '|' .. h.s, 'PX', int(left))
    else
      redis.call('DEL', T .. 'k:' .. h.k)
    end
  end
  redis.call('UNLINK', T .. 'r:' .. run, T .. 'p:' .. run, T .. 'j:' .. run, T .. 'z:' .. run,
    T .. 'o:' .. run, T .. 'i:' .. run, T .. 'y:' .. run)
end

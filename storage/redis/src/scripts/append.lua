#!lua flags=allow-oom
-- Appends an event to a run that nobody has, and makes the move that goes with it; a run that a
-- worker has is only marked, and only by a cancel. Once for each request.
-- KEYS 1 meta
-- ARGV 1 sentinel 2 run 3 request digest 4 `length:hash` before 5 and after 6 record
--   7 kind: cancel, rollback, edit, redrive, migrate 8 fingerprint from, and 9 to (both only for
--   migrate; for edit 7 for each question shown anew: id, gate, arguments, votes, deadline or
--   empty, who is asked, body)
-- Replies: A state: done or was done | G: to be cancelled | M: another journal | W state: not
--   allowed | N: no run
local run, kind = ARGV[2], ARGV[7]
local h = head(run)
if not h then return {'N'} end
if known(h.q or '', ARGV[3]) then return {'A', h.s} end
local is_cancel = kind == 'cancel' or kind == 'rollback'
if is_cancel and h.s == 'x' then return {'A', h.s} end
if h.s == 'r' then
  if not is_cancel then return {'W', h.s} end
  if not h.x then
    redis.call('HSET', T .. 'r:' .. run, 'x', kind == 'rollback' and 'b' or 'a')
    tell(run, h.F, 'x')
  end
  return {'G'}
end
local states = {cancel = 'sqp', rollback = 'sqp', edit = 'p', redrive = 'f', migrate = 'sqp'}
local allowed = states[kind]
if not string.find(allowed, h.s) then return {'W', h.s} end
if kind == 'migrate' and h.l ~= ARGV[8] then return {'W', h.s} end
if h.n ~= ARGV[4] then return {'M'} end
if redis.call('LLEN', T .. 'j:' .. run) ~= tonumber(h.len) then
  corrupt(run, 'its journal has another length than its header says')
end
local now = clock()
local after, after_head, what
local notes = {}
if is_cancel then
  after, after_head = nextup(run, h)
  notes = hush(run, h)
elseif kind == 'edit' then
  for i = 8, #ARGV, 7 do show(notes, run, h, int(now), i) end
end
if kind == 'redrive' then what = turn(run, h) end
local in_lane = h.s == 'q' and redis.call('ZSCORE', T .. 'q:' .. h.lane, run)
-- All is read; now write.
redis.call('RPUSH', T .. 'j:' .. run, ARGV[6])
local fields = {'n', ARGV[5], 'v', int(now) .. '|' .. h.snap .. '|' .. int(h.tail + #ARGV[6]),
  'q', string.sub((h.q or '') .. ARGV[3], -64)}
local function set(name, value)
  fields[#fields + 1] = name
  fields[#fields + 1] = value
end
local state = h.s
if is_cancel then
  state = 'x'
  set('f', int(now))
  redis.call('ZREM', T .. 'q:' .. h.lane, run)
  redis.call('ZREM', T .. 'due', run)
  redis.call('ZREM', T .. 'wak', run)
  redis.call('ZREM', T .. 'prk', run)
  redis.call('ZREM', T .. 'exp', run)
  if h.s ~= 'p' then depth(h.queue, -1) end
  local has_begun = h.l and h.l ~= ''
  local counts = has_begun and kind == 'cancel' and h.x ~= 'b'
  local is_last = h.session ~= '' and (counts or h.former == run)
  silence(run, h, notes)
  settle(run, 'x', int(now), is_last)
  if h.session ~= '' then leave(run, h, is_last, after, after_head) end
elseif kind == 'redrive' then
  state = 'q'
  set('c', h.claims .. '|0|0')
  redis.call('HDEL', T .. 'r:' .. run, 'y', 'f', 'r')
  redis.call('ZREM', T .. 'dead', run)
  redis.call('ZREM', T .. 'dead.l', run)
  if h.session ~= '' then redis.call('HINCRBY', T .. 'S:' .. h.session, 'open', 1) end
  depth(h.queue, 1)
  watch(run, h)
  enter(run, h, what)
elseif kind == 'edit' then
  post(notes, run)
elseif kind == 'migrate' then
  set('l', ARGV[9])
  local lane = lane_of(h, ARGV[9])
  redis.call('SADD', T .. 'l', lane)
  if in_lane then
    redis.call('ZREM', T .. 'q:' .. h.lane, run)
    redis.call('ZADD', T .. 'q:' .. lane, h.score, run)
    wake(lane, 1)
  end
end
if state ~= h.s then set('s', state) end
redis.call('HSET', T .. 'r:' .. run, unpack(fields))
tell(run, h.F, state)
return {'A', state}

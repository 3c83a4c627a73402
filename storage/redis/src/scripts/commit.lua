#!lua flags=allow-oom
-- Writes an owner's records and what becomes of the run, or nothing: only for the newest pair, at
-- the end of the journal as it is, once for each request. It is a renewal too.
-- KEYS 1 meta
-- ARGV 1 sentinel 2 run 3 epoch 4 nonce 5 request digest 6 `length:hash` before 7 and after
--   8 lease in ms, or 0 to leave it 9 disposition: c goes on, p parks, pMS parks until, sMS waits
--   until, Fc Fx FfWORD ends 10 progress: 1 or 0 11 number of records 12 pin: fingerprint, or
--   empty 13 number of consumed keys 14 of opened 15 of closed 16 snapshots: 1 or 0, then records,
--   keys, 7 for each opened or shown anew (id, gate, arguments, votes, deadline or empty, who is
--   asked, body), closed, snapshot
-- Replies: A now state inbox: done or was done | F fenced | S length: another journal | C: only an
--   end as cancelled is taken
local run, key = ARGV[2], T .. 'r:' .. ARGV[2]
local v = redis.call('HMGET', key, 's', 'e', 'o', 'n', 'v', 'c', 'x', 'q', 'l', 'a', 'b', 'w', 'y',
  't', 'i', 'Q', 'F')
local h = {s = v[1], x = v[7], l = v[9], t = v[14], i = v[15], Q = v[16]}
if not h.s or not v[4] or not v[8] then return gone(run) end
num(v[2], run, 'its epoch')
local now = clock()
local waiting = h.i and redis.call('HGETALL', T .. 'i:' .. run) or {}
if known(v[8], ARGV[5]) then return {'A', int(now), h.s, waiting} end
if h.s ~= 'r' or v[2] ~= ARGV[3] or v[3] ~= ARGV[4] then return {'F'} end
local length = num(string.match(v[4], '^(%d+):'), run, 'its length')
if v[4] ~= ARGV[6] then return {'S', int(length)} end
local fails = string.sub(ARGV[9], 1, 2) == 'Ff'
if not fails and redis.call('LLEN', T .. 'j:' .. run) ~= length then
  corrupt(run, 'its journal has another length than its header says')
end
if h.x and ARGV[9] ~= 'Fx' then return {'C'} end
h.graph, h.queue, h.session = string.match(v[10] or '', '^([^|]+)|([^|]+)|([^|]*)$')
h.prio, h.order, h.expires, h.deadline =
  string.match(v[11] or '', '^(%d)|(%d+)|%d+|(%d*)|(%d*)$')
h.snap, h.tail = string.match(v[5] or '', '^%d+|(%d+)|(%d+)$')
h.claims, h.row, h.life = string.match(v[6] or '', '^(%d+)|(%d+)|(%d+)$')
h.worker = string.match(v[12] or '', '^[^|]+')
if not (h.queue and h.prio and h.snap and h.claims and h.worker) then
  corrupt(run, 'its header is cut or altered')
end
local records = tonumber(ARGV[11])
local lists, first = {ARGV[13] + 0, ARGV[14] + 0, ARGV[15] + 0}, 17
local keys = first + records
local opened, open = keys + lists[1], nil
local closed = opened + 7 * lists[2]
if lists[1] > 0 then
  local consumed, left = {}, {}
  for i = keys, opened - 1 do consumed[ARGV[i]] = true end
  for i = 1, #waiting, 2 do
    if not consumed[waiting[i]] then
      left[#left + 1] = waiting[i]
      left[#left + 1] = waiting[i + 1]
    end
  end
  waiting = left
  h.is_empty = h.i and #left == 0
end
-- Whether an answer that waits is for a question that is open after this commit.
local function is_answered()
  local stored, gates = redis.call('HGETALL', T .. 'o:' .. run), {}
  open = {}
  for i = 1, #stored, 2 do open[stored[i]] = string.match(stored[i + 1], '^%d+\n[^\n]*\n([^\n]*)') end
  for i = opened, closed - 1, 7 do open[ARGV[i]] = ARGV[i + 1] end
  for i = closed, closed + lists[3] - 1 do open[ARGV[i]] = nil end
  for _, gate in pairs(open) do gates[gate] = true end
  for i = 1, #waiting, 2 do
    local kind, name = string.sub(waiting[i], 1, 1), string.sub(waiting[i], 2)
    if kind == 'v' then kind, name = 'i', string.match(name, '^[^|]*') end
    if (kind == 'i' and open[name]) or (kind == 'g' and gates[waiting[i]]) then return true end
  end
  return false
end
local what, until_ms = string.sub(ARGV[9], 1, 1), string.sub(ARGV[9], 2)
if what == 'p' and #waiting > 0 and is_answered() then what = 'c' end
local state = what == 'c' and 'r' or what
local is_timed = (what == 's' or what == 'p') and until_ms ~= ''
if is_timed and tonumber(until_ms) <= now then state = 'q' end
if what == 'F' then state = string.sub(until_ms, 1, 1) end
if ARGV[12] ~= '' then h.l = ARGV[12] end
h.lane, h.score = lane_of(h, h.l), int((9 - h.prio) * 1e13 + h.order)
local place = state == 'q' and turn(run, h)
local after, after_head
if what == 'F' then after, after_head = nextup(run, h) end
local notes = {}
if lists[2] + lists[3] > 0 or (what == 'F' and h.Q) then
  h.g = redis.call('HGET', key, 'g')
  if what == 'F' then
    notes = hush(run, h)
  else
    for i = opened, closed - 1, 7 do show(notes, run, h, int(now), i) end
    for i = closed, closed + lists[3] - 1 do close(notes, run, h, ARGV[i]) end
  end
end
-- All is read; now write.
local bytes = 0
for i = first, keys - 1, 1000 do
  redis.call('RPUSH', T .. 'j:' .. run, unpack(ARGV, i, math.min(i + 999, keys - 1)))
end
for i = first, keys - 1 do bytes = bytes + #ARGV[i] end
h.tail = int(h.tail + bytes)
if ARGV[16] == '1' then
  redis.call('SET', T .. 'z:' .. run, ARGV[#ARGV])
  h.snap, h.tail = string.match(ARGV[7], '^%d+'), '0'
end
local fields = {'n', ARGV[7], 'v', int(now) .. '|' .. h.snap .. '|' .. h.tail,
  'q', string.sub(v[8] .. ARGV[5], -64)}
local function set(name, value)
  fields[#fields + 1] = name
  fields[#fields + 1] = value
end
local row, life = tonumber(h.row), tonumber(h.life)
if what ~= 'c' then
  row, life = 0, math.max(life - 1, 0)
elseif ARGV[10] == '1' then
  row = 1
end
local counts = h.claims .. '|' .. int(row) .. '|' .. int(life)
if counts ~= v[6] then set('c', counts) end
if h.l ~= v[9] then
  set('l', h.l)
  redis.call('SADD', T .. 'l', h.lane)
end
if lists[2] > 0 and what ~= 'F' then set('Q', '1') end
if what ~= 'c' then
  set('s', state)
  set('o', '')
  if state == 's' or state == 'p' then set('d', until_ms) end
end
if what == 'F' then
  set('f', int(now))
  if state == 'f' then set('r', string.sub(until_ms, 2)) end
end
redis.call('HSET', key, unpack(fields))
if v[13] and records > 0 then redis.call('HDEL', key, 'y') end
if h.is_empty then redis.call('HDEL', key, 'i') end
for i = keys, opened - 1 do redis.call('HDEL', T .. 'i:' .. run, ARGV[i]) end
if what ~= 'F' then post(notes, run) end
if what ~= 'c' then
  disown(run, h.worker)
elseif ARGV[8] ~= '0' then
  redis.call('ZADD', T .. 'lse', int(now + ARGV[8]), run)
end
if state == 'p' then
  redis.call('ZADD', T .. 'prk', int(now), run)
  if until_ms ~= '' then redis.call('ZADD', T .. 'wak', until_ms, run) end
elseif state == 's' then
  redis.call('ZADD', T .. 'due', until_ms, run)
  depth(h.queue, 1)
elseif state == 'q' then
  depth(h.queue, 1)
  enter(run, h, place)
end
if what == 'F' then
  local has_begun = state == 'c' or (h.l and h.l ~= '')
  local counts = has_begun and not (state == 'x' and h.x == 'b')
  local is_last = h.session ~= '' and (counts or h.former == run)
  silence(run, h, notes)
  settle(run, state, int(now), is_last)
  if h.session ~= '' then leave(run, h, is_last, after, after_head) end
  waiting = {}
elseif what ~= 'c' then
  watch(run, h)
end
tell(run, v[17], state)
return {'A', int(now), state, waiting}

#!lua flags=allow-oom
-- What `commit` does, for an owner that ends a run with records: most runs end so, and it needs
-- half the time. A run of a session, or with questions or answers, is left to `commit`.
-- KEYS 1 meta
-- ARGV 1 sentinel 2 run 3 epoch 4 nonce 5 request digest 6 `length:hash` before 7 and after
--   8 lease in ms 9 disposition: Fc Fx FfWORD 10 progress: 1 or 0 11 number of records 12 pin:
--   fingerprint, or empty, then the records
-- Replies: as `commit`, or M: it is for `commit`, and nothing was done
local run, key = ARGV[2], T .. 'r:' .. ARGV[2]
local v = redis.call('HMGET', key, 's', 'e', 'n', 'v', 'c', 'q', 'o', 'x', 'y', 'i', 'F', 'a', 'w',
  'Q')
if not v[1] or not v[3] or not v[6] then return gone(run) end
num(v[2], run, 'its epoch')
local now = clock()
if known(v[6], ARGV[5]) then return {'A', int(now), v[1], {}} end
if v[1] ~= 'r' or v[2] ~= ARGV[3] or v[7] ~= ARGV[4] then return {'F'} end
if v[3] ~= ARGV[6] then
  return {'S', int(num(string.match(v[3], '^(%d+):'), run, 'its length'))}
end
if v[8] and ARGV[9] ~= 'Fx' then return {'C'} end
local snapshot, tail = string.match(v[4] or '', '^%d+|(%d+)|(%d+)$')
local claims, _, life = string.match(v[5] or '', '^(%d+)|(%d+)|(%d+)$')
local graph, queue, session = string.match(v[12] or '', '^([^|]+)|([^|]+)|([^|]*)$')
local worker = string.match(v[13] or '', '^[^|]+')
if not (tail and life and session and worker) then
  corrupt(run, 'its header is cut or altered')
end
if session ~= '' or v[10] or v[14] then return {'M'} end
-- All is read; now write.
local bytes = 0
for i = 13, #ARGV do bytes = bytes + #ARGV[i] end
for i = 13, #ARGV, 1000 do
  redis.call('RPUSH', T .. 'j:' .. run, unpack(ARGV, i, math.min(i + 999, #ARGV)))
end
local at, state, reason = int(now), string.sub(ARGV[9], 2, 2), string.sub(ARGV[9], 3)
local requests = v[6] .. ARGV[5]
if #requests > 64 then requests = string.sub(requests, -64) end
redis.call('HSET', key, 's', state, 'o', '', 'n', ARGV[7], 'q', requests, 'f', at,
  'v', at .. '|' .. snapshot .. '|' .. int(tail + bytes),
  'c', claims .. '|0|' .. int(math.max(life - 1, 0)))
if state == 'f' then redis.call('HSET', key, 'r', reason) end
if ARGV[12] ~= '' then
  redis.call('HSET', key, 'l', ARGV[12])
  redis.call('SADD', T .. 'l', lane_of({queue = queue, graph = graph}, ARGV[12]))
end
if v[9] and ARGV[11] ~= '0' then redis.call('HDEL', key, 'y') end
disown(run, worker)
settle(run, state, at, false)
tell(run, v[11], state)
return {'A', at, state, {}}

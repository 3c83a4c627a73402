#!lua flags=allow-oom
-- What `commit` does, for an owner that only writes records and goes on: most commits are this, and
-- it needs half the time.
-- KEYS 1 meta
-- ARGV 1 sentinel 2 run 3 epoch 4 nonce 5 request digest 6 `length:hash` before 7 and after
--   8 lease in ms 9 disposition: c 10 progress: 1 or 0 11 number of records 12 pin: fingerprint, or
--   empty, then the records
-- Replies: as `commit`
local run, key = ARGV[2], T .. 'r:' .. ARGV[2]
local v = redis.call('HMGET', key, 's', 'e', 'n', 'v', 'c', 'q', 'o', 'x', 'y', 'i', 'F', 'a')
if not v[1] or not v[3] or not v[6] then return gone(run) end
num(v[2], run, 'its epoch')
local now = clock()
if known(v[6], ARGV[5]) then
  local waiting = v[10] and redis.call('HGETALL', T .. 'i:' .. run) or {}
  return {'A', int(now), v[1], waiting}
end
if v[1] ~= 'r' or v[2] ~= ARGV[3] or v[7] ~= ARGV[4] then return {'F'} end
if v[3] ~= ARGV[6] then
  return {'S', int(num(string.match(v[3], '^(%d+):'), run, 'its length'))}
end
if v[8] then return {'C'} end
local snapshot, tail = string.match(v[4] or '', '^%d+|(%d+)|(%d+)$')
local claims, row, life = string.match(v[5] or '', '^(%d+)|(%d+)|(%d+)$')
if not (tail and row) then corrupt(run, 'its header is cut or altered') end
local waiting = v[10] and redis.call('HGETALL', T .. 'i:' .. run) or {}
local graph, queue = string.match(v[12] or '', '^([^|]+)|([^|]+)|')
if not queue then corrupt(run, 'its header is cut or altered') end
-- All is read; now write.
for i = 13, #ARGV, 1000 do
  redis.call('RPUSH', T .. 'j:' .. run, unpack(ARGV, i, math.min(i + 999, #ARGV)))
end
local bytes = 0
for i = 13, #ARGV do bytes = bytes + #ARGV[i] end
local at = int(now)
local moved, requests = at .. '|' .. snapshot .. '|' .. int(tail + bytes), v[6] .. ARGV[5]
if #requests > 64 then requests = string.sub(requests, -64) end
if ARGV[10] == '1' and row ~= '1' then
  redis.call('HSET', key, 'n', ARGV[7], 'v', moved, 'q', requests, 'c', claims .. '|1|' .. life)
else
  redis.call('HSET', key, 'n', ARGV[7], 'v', moved, 'q', requests)
end
if ARGV[12] ~= '' then
  redis.call('HSET', key, 'l', ARGV[12])
  redis.call('SADD', T .. 'l', lane_of({queue = queue, graph = graph}, ARGV[12]))
end
if v[9] and ARGV[11] ~= '0' then redis.call('HDEL', key, 'y') end
redis.call('ZADD', T .. 'lse', int(now + ARGV[8]), run)
tell(run, v[11], 'r')
return {'A', at, 'r', waiting}

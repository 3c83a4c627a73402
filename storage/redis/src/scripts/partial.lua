#!lua
-- Keeps the newest 1,000 partial results of a run, numbered from 1; none for a run that is gone.
-- KEYS 1 meta
-- ARGV 1 sentinel 2 run 3 length of its journal 4 body
-- Replies: the number, or 0
local key = T .. 'y:' .. ARGV[2]
local head = redis.call('HMGET', T .. 'r:' .. ARGV[2], 's', 'F')
if not head[1] then return 0 end
local newest = redis.call('LINDEX', key, -1)
local n = newest and num(string.match(newest, '^%d+'), ARGV[2], 'a partial') + 1 or 1
redis.call('RPUSH', key, int(n) .. '|' .. ARGV[3] .. '|' .. ARGV[4])
redis.call('LTRIM', key, -1000, -1)
tell(ARGV[2], head[2], 'y')
return n

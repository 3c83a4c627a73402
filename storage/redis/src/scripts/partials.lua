#!lua flags=no-writes,allow-oom
-- Reads the partial results of a run that are newer than one.
-- KEYS 1 meta
-- ARGV 1 sentinel 2 run 3 number of the one
-- Replies: `number|length|body` for each
local key = T .. 'y:' .. ARGV[2]
local oldest = redis.call('LINDEX', key, 0)
if not oldest then return {} end
local n = num(string.match(oldest, '^%d+'), ARGV[2], 'a partial')
return redis.call('LRANGE', key, int(math.max(ARGV[3] - n + 1, 0)), -1)

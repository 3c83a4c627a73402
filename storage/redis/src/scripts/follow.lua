#!lua flags=allow-oom
-- Notes in the head of a run that somebody follows it: from now on its changes are told.
-- KEYS 1 meta
-- ARGV 1 sentinel 2 run
-- Replies: 1 noted | 0 no run
local key = T .. 'r:' .. ARGV[2]
if redis.call('EXISTS', key) == 0 then return 0 end
redis.call('HSET', key, 'F', '1')
return 1

#!lua flags=allow-oom
-- Puts a worker's record on the list, or takes it off.
-- KEYS 1 meta
-- ARGV 1 sentinel 2 worker 3 record, or empty to take it off
-- Replies: now
local now = clock()
if ARGV[3] == '' then
  redis.call('ZREM', T .. 'workers', ARGV[2])
  redis.call('HDEL', T .. 'wk', ARGV[2])
else
  redis.call('ZADD', T .. 'workers', int(now), ARGV[2])
  redis.call('HSET', T .. 'wk', ARGV[2], ARGV[3])
end
return int(now)

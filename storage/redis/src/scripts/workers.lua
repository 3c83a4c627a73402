#!lua flags=no-writes,allow-oom
-- Reads the workers and the runs they hold.
-- KEYS 1 meta
-- ARGV 1 sentinel
-- Replies: for each worker: last sign, record, runs
local out = {}
local rows = redis.call('ZRANGE', T .. 'workers', 0, 9999, 'WITHSCORES')
for i = 1, #rows, 2 do
  local record = redis.call('HGET', T .. 'wk', rows[i])
  if record then
    out[#out + 1] = {rows[i + 1], record, redis.call('SMEMBERS', T .. 'h:' .. rows[i])}
  end
end
return out

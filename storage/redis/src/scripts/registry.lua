#!lua
-- Publishes a graph; the time of its first publication is kept. Or pauses or resumes a queue.
-- KEYS 1 meta
-- ARGV 1 sentinel 2 what: graph, pause, resume 3 graph and fingerprint, or the queue 4 record of
--   the graph (absent for a queue)
-- Replies: 1
if ARGV[2] == 'graph' then
  local old = redis.call('HGET', T .. 'graphs', ARGV[3])
  local since = old and string.match(old, '^%d+') or int(clock())
  redis.call('HSET', T .. 'graphs', ARGV[3], since .. '|' .. ARGV[4])
elseif ARGV[2] == 'pause' then
  redis.call('SADD', T .. 'paused', ARGV[3])
else
  redis.call('SREM', T .. 'paused', ARGV[3])
  for _, lane in ipairs(redis.call('SMEMBERS', T .. 'l')) do
    if string.match(lane, '^[^|]+') == ARGV[3] then wake(lane, 1) end
  end
end
return 1

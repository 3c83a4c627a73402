#!lua flags=allow-oom
-- Deletes a session whose runs have all ended, 100 runs at a time and the session itself last.
-- KEYS 1 meta
-- ARGV 1 sentinel 2 session 3 age of keys in ms
-- Replies: -1 no such session | 0 a run is open | 1 deleted | 2 more runs are to be deleted
local session = ARGV[2]
local open = redis.call('HMGET', T .. 'S:' .. session, 'graph', 'open')
if not open[1] then return -1 end
if num(open[2], 'session ' .. session, 'its count') > 0 then return 0 end
local now, heads = clock(), {}
local runs = redis.call('ZRANGE', T .. 'x:' .. session, 0, 99)
for n, run in ipairs(runs) do heads[n] = head(run) or false end
for n, run in ipairs(runs) do
  if heads[n] then
    forget(run, heads[n], now, tonumber(ARGV[3]))
  else
    redis.call('ZREM', T .. 'x:' .. session, run)
  end
end
if redis.call('EXISTS', T .. 'x:' .. session) == 1 then return 2 end
redis.call('DEL', T .. 'S:' .. session, T .. 's:' .. session)
redis.call('ZREM', T .. 'sx', session)
return 1

#!lua flags=allow-oom
-- Takes all runs from a worker that is gone, and the worker off the list; 100 at most, so that
-- the caller repeats until the reply is empty.
-- KEYS 1 meta
-- ARGV 1 sentinel 2 worker 3 evidence as JSON, then the waits after each loss in ms
-- Replies: the runs
local worker, delays, out = ARGV[2], {}, {}
for i = 4, #ARGV do delays[#delays + 1] = ARGV[i] end
local now, heads = clock(), {}
for n, run in ipairs(redis.call('SRANDMEMBER', T .. 'h:' .. worker, 100)) do
  local good, h, _, what = look(run, turn)
  heads[n] = {run, good, h, what}
end
for _, entry in ipairs(heads) do
  local run, good, h = entry[1], entry[2], entry[3]
  if h and h.s == 'r' and h.worker == worker then
    lose(run, h, now, ARGV[3], delays, entry[4])
    out[#out + 1] = run
  else
    if not good then aside(run, now) end
    redis.call('SREM', T .. 'h:' .. worker, run)
  end
end
redis.call('ZREM', T .. 'workers', worker)
redis.call('HDEL', T .. 'wk', worker)
return out

#!lua flags=allow-oom
-- Upkeep of the namespace: takes runs from lost workers unless the store itself stood still, fires
-- timers, and gives the runs that must end and have no owner to the caller.
-- KEYS 1 meta
-- ARGV 1 sentinel 2 worker 3 nonce 4 lease in ms 5 grace in ms 6 gap that holds in ms
--   7 doubt: 1 or 0 8 most of each kind 9 evidence as JSON, then the waits after each loss in ms,
--   then the server's run id
-- Replies: now, held until or -1, number fired, reaped runs, then closing runs as `claim` has them
local now, us = clock()
local lease, max, server = tonumber(ARGV[4]), tonumber(ARGV[8]), ARGV[#ARGV]
local m = redis.call('HMGET', T .. 'm', 'last', 'hold', 'lease', 'server')
local last, hold, long = tonumber(m[1]), tonumber(m[2] or 0), tonumber(m[3] or lease)
local jumped = last and (now - last > tonumber(ARGV[6]) or now < last)
local other = last and m[4] and m[4] ~= server
if jumped or other or ARGV[7] == '1' then hold = now + long end
local held = hold > now and int(hold) or '-1'
local soon = math.min(200, ARGV[6] / 2)
if last and not jumped and not other and ARGV[7] == '0' and now - last < soon then
  return {int(now), held, 0, {}}
end
redis.call('HSET', T .. 'm', 'last', int(now), 'hold', int(hold), 'server', server)
local delays, reaped = {}, {}
for i = 10, #ARGV - 1 do delays[#delays + 1] = ARGV[i] end
local far = redis.call('ZRANGEBYSCORE', T .. 'lse', '(' .. int(now + long), '+inf', 'LIMIT', 0, max)
for _, run in ipairs(far) do redis.call('ZADD', T .. 'lse', int(now + long), run) end
if held == '-1' then
  local gone = redis.call('ZRANGEBYSCORE', T .. 'lse', '-inf', int(now - ARGV[5]), 'LIMIT', 0, max)
  for _, run in ipairs(gone) do
    local good, h, _, what = look(run, turn)
    if not good or (h and h.s == 'r' and not h.worker) then
      aside(run, now)
    elseif h and h.s == 'r' then
      lose(run, h, now, ARGV[9], delays, what)
      reaped[#reaped + 1] = run
    else
      stray(run, h, 'lse', now)
    end
  end
end
local out = {int(now), held, fire(now, max), reaped}
local ending = redis.call('ZRANGE', T .. 'exp', '-inf', int(now), 'BYSCORE', 'LIMIT', 0, max)
for _, run in ipairs(ending) do
  local good, h, _, reply = look(run, grab)
  if not good then
    aside(run, now)
  elseif h and string.find('sqp', h.s) then
    redis.call('ZREM', T .. 'q:' .. h.lane, run)
    redis.call('ZREM', T .. 'due', run)
    redis.call('ZREM', T .. 'wak', run)
    redis.call('ZREM', T .. 'prk', run)
    if h.s ~= 'p' then depth(h.queue, -1) end
    take(run, h, reply, now, us, ARGV[2], ARGV[3])
    redis.call('ZADD', T .. 'lse', int(now + lease), run)
    redis.call('SADD', T .. 'h:' .. ARGV[2], run)
    longest(lease)
    out[#out + 1] = reply
  else
    stray(run, h, 'exp', now)
  end
end
-- Once in 5 s: a run that a silent worker holds and that has no deadline gets one that is over.
if not last or math.floor(now / 5000) ~= math.floor(last / 5000) then
  local silent =
    redis.call('ZRANGEBYSCORE', T .. 'workers', '-inf', int(now - long - ARGV[5]), 'LIMIT', 0, 20)
  for _, worker in ipairs(silent) do
    for _, run in ipairs(redis.call('SRANDMEMBER', T .. 'h:' .. worker, max)) do
      redis.call('ZADD', T .. 'lse', 'NX', int(now - ARGV[5]), run)
    end
  end
end
local day = int(now - 86400000)
local silent = redis.call('ZRANGEBYSCORE', T .. 'workers', '-inf', day, 'LIMIT', 0, 20)
for _, worker in ipairs(silent) do
  redis.call('ZREM', T .. 'workers', worker)
  redis.call('HDEL', T .. 'wk', worker)
end
return out

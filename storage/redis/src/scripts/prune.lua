#!lua flags=allow-oom
-- Deletes runs that ended long enough ago; never the last one of a session, which stands apart.
-- An idempotency key outlives its run until it is old enough.
-- KEYS 1 meta
-- ARGV 1 sentinel 2 age of completed and cancelled runs in ms 3 of failed ones 4 of keys 5 most
-- Replies: how many
local now, left = clock(), tonumber(ARGV[5])
local count = 0
for _, kind in ipairs({{'fin', 2}, {'can', 2}, {'dead', 3}}) do
  local old = redis.call('ZRANGE', T .. kind[1], '-inf', int(now - ARGV[kind[2]]), 'BYSCORE',
    'LIMIT', 0, left - count)
  for _, run in ipairs(old) do
    local good, h = look(run, whole)
    if good and h and string.find('cfx', h.s) then
      forget(run, h, now, tonumber(ARGV[4]))
      count = count + 1
    else
      if not good then aside(run, now) end
      stray(run, h, kind[1], now)
    end
  end
end
return count

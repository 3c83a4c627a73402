#!lua flags=allow-oom
-- Keeps the leases whose pair is the newest; a run that was taken away is told so and untouched.
-- KEYS 1 meta
-- ARGV 1 sentinel 2 lease in ms, then 3 for each: run, epoch, nonce
-- Replies: for each lease -1 fenced, else the sum of 1 to be cancelled and 2 answers wait
local now = clock()
local out, leases = {}, {}
for i = 3, #ARGV, 3 do
  local run = ARGV[i]
  local good, v = pcall(redis.call, 'HMGET', T .. 'r:' .. run, 's', 'e', 'o', 'x', 'i')
  if good and v[1] == 'r' and v[2] == ARGV[i + 1] and v[3] == ARGV[i + 2] then
    leases[#leases + 1] = int(now + ARGV[2])
    leases[#leases + 1] = run
    out[#out + 1] = (v[4] and 1 or 0) + (v[5] and 2 or 0)
  else
    out[#out + 1] = -1
  end
end
for first = 1, #leases, 1000 do
  redis.call('ZADD', T .. 'lse', unpack(leases, first, math.min(first + 999, #leases)))
end
if #leases > 0 then longest(tonumber(ARGV[2])) end
return out

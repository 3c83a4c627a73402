#!lua flags=no-writes,allow-oom
-- Heads of an index in the order of its rows, from a place on that moving rows do not disturb.
-- KEYS 1 meta
-- ARGV 1 sentinel 2 index 3 direction: up or down 4 time of the last row, or empty 5 id of the
--   last row 6 most rows
-- Replies: for each row: time, member, head or empty, end of its lease or empty; behind the last
--   one nothing more
local key, down, most = T .. ARGV[2], ARGV[3] == 'down', tonumber(ARGV[6])
local rows, skip = {}, 0
local function range(from, to)
  if down then
    return redis.call('ZREVRANGEBYSCORE', key, to, from, 'WITHSCORES', 'LIMIT', skip, most)
  end
  return redis.call('ZRANGEBYSCORE', key, from, to, 'WITHSCORES', 'LIMIT', skip, most)
end
local low, high = '-inf', '+inf'
if ARGV[4] ~= '' then
  if down then high = ARGV[4] else low = ARGV[4] end
  local rank = redis.call(down and 'ZREVRANK' or 'ZRANK', key, ARGV[5])
  local score = rank and redis.call('ZSCORE', key, ARGV[5])
  if score == ARGV[4] then skip = nil end
  if not skip then
    rows = redis.call(down and 'ZREVRANGE' or 'ZRANGE', key, rank + 1, rank + most, 'WITHSCORES')
  end
end
while skip and #rows < most * 2 do
  local found = range(low, high)
  for i = 1, #found, 2 do
    local is_new = ARGV[4] == '' or found[i + 1] ~= ARGV[4]
    if not is_new then
      if down then is_new = before(found[i], ARGV[5]) else is_new = before(ARGV[5], found[i]) end
    end
    if is_new then
      rows[#rows + 1] = found[i]
      rows[#rows + 1] = found[i + 1]
    end
  end
  skip = skip + most
  if #found < most * 2 then skip = nil end
end
local out = {}
for i = 1, #rows, 2 do
  local run = string.match(rows[i], '[^ ]+$')
  local good, h, flat = pcall(head, run)
  local deadline = good and h and h.s == 'r' and redis.call('ZSCORE', T .. 'lse', run) or ''
  out[#out + 1] = {rows[i + 1], rows[i], good and flat or '', deadline}
end
return out

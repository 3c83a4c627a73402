#!lua flags=allow-oom
-- Counts the runs of each queue that wait, and compares or corrects the stored counts.
-- KEYS 1 meta
-- ARGV 1 sentinel 2 what: look, mend 3 most rows to be counted 4 the queue (only for mend)
-- Replies: -1: too many to count in one step | for each wrong count: queue, stored, counted;
--   after a repair 1, or 0 when the count is right
local found, left = {}, tonumber(ARGV[3])
local function add(queue, by) found[queue] = (found[queue] or 0) + by end
for _, lane in ipairs(redis.call('SMEMBERS', T .. 'l')) do
  add(string.match(lane, '^[^|]*'), redis.call('ZCARD', T .. 'q:' .. lane))
end
left = left - redis.call('ZCARD', T .. 'due') - redis.call('ZCARD', T .. 'sx')
if left < 0 then return -1 end
for _, run in ipairs(redis.call('ZRANGE', T .. 'due', 0, -1)) do
  local good, h = look(run)
  if good and h and h.s == 's' then add(h.queue, 1) end
end
-- Those who wait for their turn are in no lane.
for _, session in ipairs(redis.call('ZRANGE', T .. 'sx', 0, -1)) do
  local order = redis.call('LRANGE', T .. 's:' .. session, 1, -1)
  left = left - #order
  if left < 0 then return -1 end
  for _, run in ipairs(order) do
    local good, h = look(run)
    if good and h and h.s == 'q' and not redis.call('ZSCORE', T .. 'q:' .. h.lane, run) then
      add(h.queue, 1)
    end
  end
end
local stored, wrong = {}, {}
local flat = redis.call('HGETALL', T .. 'c')
for i = 1, #flat, 2 do stored[flat[i]] = flat[i + 1] end
for queue in pairs(stored) do add(queue, 0) end
for queue, count in pairs(found) do
  if (stored[queue] or '0') ~= int(count) then
    wrong[#wrong + 1] = {queue, stored[queue] or '0', int(count)}
  end
end
if ARGV[2] == 'look' then return wrong end
for _, row in ipairs(wrong) do
  if row[1] == ARGV[4] then
    redis.call('HSET', T .. 'c', row[1], row[3])
    return 1
  end
end
return 0

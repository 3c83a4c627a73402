#!lua flags=no-writes,allow-oom
-- Finds the keys that all runs share, the lanes with their tokens, and what workers hold, that have
-- another type than the layout gives them.
-- KEYS 1 meta
-- ARGV 1 sentinel, then 2 for each key: name, type
-- Replies: for each one: name, type, type by the layout
local out = {}
local function compare(name, kind)
  local is = redis.call('TYPE', T .. name).ok
  if is ~= kind and is ~= 'none' then out[#out + 1] = {name, is, kind} end
end
for i = 2, #ARGV, 2 do compare(ARGV[i], ARGV[i + 1]) end
if redis.call('TYPE', T .. 'l').ok == 'set' then
  for n, lane in ipairs(redis.call('SMEMBERS', T .. 'l')) do
    if n > 1000 then break end
    compare('q:' .. lane, 'zset')
    compare('w:' .. lane, 'list')
  end
end
if redis.call('TYPE', T .. 'workers').ok == 'zset' then
  for _, worker in ipairs(redis.call('ZRANGE', T .. 'workers', 0, 999)) do
    compare('h:' .. worker, 'set')
  end
end
return out

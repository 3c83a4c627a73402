#!lua
-- Gives runs of the lanes to a worker, best first, each with a pair that is newer than any before.
-- Due timers are fired first. The same worker and nonce get the same runs again and no others.
-- A damaged run is put aside in `bad`. A run that lost its worker goes out alone.
-- KEYS 1 meta
-- ARGV 1 sentinel 2 worker 3 nonce 4 its digest 5 most runs 6 lease in ms 7 oldest first: 1 or 0
--   8 most bytes, then the lanes
-- Replies: now, next due time or -1, then for each run id, head, changes, payload, snapshot,
--   journal, inbox, last run of its session
local now, us = clock()
local worker, nonce, max, lease = ARGV[2], ARGV[3], tonumber(ARGV[5]), tonumber(ARGV[6])
local out = {int(now), '-1'}
local used = redis.call('GET', T .. 'u:' .. worker) or ''
if known(used, ARGV[4]) then
  for _, run in ipairs(redis.call('SMEMBERS', T .. 'h:' .. worker)) do
    local good, h, _, reply = look(run, grab)
    if good and h and h.s == 'r' and h.o == nonce then
      out[#out + 1] = reply
      redis.call('ZADD', T .. 'lse', int(now + lease), run)
    end
  end
  return out
end
if redis.call('EXISTS', T .. 'due', T .. 'wak') > 0 then fire(now, 100) end
local paused, sources = {}, {}
for _, queue in ipairs(redis.call('SMEMBERS', T .. 'paused')) do paused[queue] = true end
local chunk = #ARGV <= 12 and max or math.min(max, 4)
local function source(key, low, high, less)
  sources[#sources + 1] =
    {key = key, low = low, high = high, less = less, at = 0, next = 1, rows = {}}
end
for i = 9, #ARGV do
  local key = T .. 'q:' .. ARGV[i]
  if paused[string.match(ARGV[i], '^[^|]*')] then
    -- Its runs wait.
  elseif ARGV[7] == '1' then
    for level = 0, 9 do
      source(key, int(level * 1e13), int(level * 1e13 + 1e13 - 1), level * 1e13)
    end
  else
    source(key, '-inf', '+inf', 0)
  end
end
-- The first row of a source that was not looked at yet, and its rank among all rows.
local function peek(s)
  if not s.rows[s.next] and not s.dry then
    s.rows =
      redis.call('ZRANGEBYSCORE', s.key, s.low, s.high, 'WITHSCORES', 'LIMIT', s.at, chunk)
    s.at, s.next, s.dry = s.at + chunk, 1, #s.rows < chunk * 2
  end
  return s.rows[s.next], s.rows[s.next + 1] and s.rows[s.next + 1] - s.less
end
local picked, looked, bytes = {}, 0, 0
local function best()
  local found, rank
  for _, s in ipairs(sources) do
    local run, place = peek(s)
    if run and (not rank or place < rank) then found, rank = s, place end
  end
  if not found then return nil end
  found.next = found.next + 2
  return found.rows[found.next - 2], found.key
end
while #picked < max and looked < max + 100 do
  local run, key = best()
  if not run then break end
  looked = looked + 1
  local good, h, _, reply, size = look(run, grab)
  if not good or not h then
    aside(run, now, string.match(key, 'q:([^|]+)|[^|]+|[^|]*$'))
    redis.call('ZREM', key, run)
  elseif h.s ~= 'q' then
    redis.call('ZREM', key, run)
  elseif h.row == '0' or #picked == 0 then
    picked[#picked + 1] = {run, h, reply, key}
    bytes = bytes + size
    if h.row ~= '0' or bytes > tonumber(ARGV[8]) then break end
  end
end
if #picked == 0 then
  local due = redis.call('ZRANGE', T .. 'due', 0, 0, 'WITHSCORES')[2]
  local timer = redis.call('ZRANGE', T .. 'wak', 0, 0, 'WITHSCORES')[2]
  out[2] = int(math.min(due or 1e15, timer or 1e15))
  if out[2] == '1000000000000000' then out[2] = '-1' end
  local tokens = {}
  for i = 9, #ARGV do tokens[#tokens + 1] = T .. 'w:' .. ARGV[i] end
  if #tokens > 0 and looked == 0 then redis.call('DEL', unpack(tokens)) end
  return out
end
local lanes, queues, leases, held = {}, {}, {}, {}
for n, pick in ipairs(picked) do
  local run, h, reply = pick[1], pick[2], pick[3]
  take(run, h, reply, now, us, worker, nonce)
  local lane = lanes[pick[4]] or {}
  lanes[pick[4]], lane[#lane + 1] = lane, run
  queues[h.queue] = (queues[h.queue] or 0) - 1
  leases[n * 2 - 1], leases[n * 2], held[n] = int(now + lease), run, run
  out[#out + 1] = reply
end
for key, runs in pairs(lanes) do redis.call('ZREM', key, unpack(runs)) end
for queue, count in pairs(queues) do depth(queue, count) end
redis.call('ZADD', T .. 'lse', unpack(leases))
redis.call('SADD', T .. 'h:' .. worker, unpack(held))
redis.call('SET', T .. 'u:' .. worker, string.sub(used .. ARGV[4], -128), 'EX', 86400)
longest(lease)
return out

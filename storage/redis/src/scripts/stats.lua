#!lua flags=no-writes,allow-oom
-- Counts of the namespace, all of one moment.
-- KEYS 1 meta
-- ARGV 1 sentinel
-- Replies: now, waiting with scheduled, scheduled, running, parked, completed, failed, cancelled,
--   open questions, paused queues, then for each lane: its name, runs, oldest creation or empty
local now = clock()
local function card(name) return redis.call('ZCARD', T .. name) end
local open = card('ou:all') + card('oo:all') + card('ou:some') + card('oo:some')
local waiting = 0
for _, count in ipairs(redis.call('HVALS', T .. 'c')) do waiting = waiting + count end
local out = {int(now), int(waiting), int(card('due')), int(card('lse')), int(card('prk')),
  int(card('fin') + card('fin.l')), int(card('dead') + card('dead.l')),
  int(card('can') + card('can.l')), int(open), redis.call('SMEMBERS', T .. 'paused')}
for _, lane in ipairs(redis.call('SMEMBERS', T .. 'l')) do
  local key, oldest, first = T .. 'q:' .. lane, '', nil
  local count = redis.call('ZCARD', key)
  if count > 0 then
    for level = 0, 9 do
      local row = redis.call('ZRANGE', key, int(level * 1e13), int(level * 1e13 + 1e13 - 1),
        'BYSCORE', 'LIMIT', 0, 1, 'WITHSCORES')
      if row[1] and (not first or row[2] - level * 1e13 < first) then
        first = row[2] - level * 1e13
        local b = redis.call('HGET', T .. 'r:' .. row[1], 'b')
        oldest = b and string.match(b, '^%d|%d+|(%d+)|') or ''
      end
    end
    out[#out + 1] = {lane, int(count), oldest}
  end
end
return out

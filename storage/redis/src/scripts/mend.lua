#!lua flags=allow-oom
-- Makes the changes of a repair, or none when anything that it relies on has changed.
-- KEYS 1 meta
-- ARGV 1 sentinel, then 5 for each change: kind, place, item, before, after. Kinds: z score in a
--   sorted set, s member of a set, h field of a hash, l member of a list (at its end), k value of
--   a key, n name of a key by its type, a run to set aside because it cannot be read, A or for
--   another reason
-- Replies: 1 done | 0 something has changed
local reads = {}
function reads.z(name, item) return redis.call('ZSCORE', T .. name, item) or '' end
function reads.s(name, item) return redis.call('SISMEMBER', T .. name, item) == 1 and '1' or '' end
function reads.h(name, item) return redis.call('HGET', T .. name, item) or '' end
function reads.l(name, item) return redis.call('LPOS', T .. name, item) and '1' or '' end
function reads.k(name) return redis.call('GET', T .. name) or '' end
function reads.n(name) return redis.call('TYPE', T .. name).ok end
function reads.a(_, item)
  local good, h = look(item)
  return good and not (h and h.s == 'r' and not h.worker) and 'sound' or ''
end
function reads.A() return '' end
for i = 2, #ARGV, 5 do
  if reads[ARGV[i]](ARGV[i + 1], ARGV[i + 2]) ~= ARGV[i + 3] then return 0 end
end
local now = clock()
-- All is read; now write.
for i = 2, #ARGV, 5 do
  local kind, name, item, before, after = unpack(ARGV, i, i + 4)
  local key = T .. name
  if kind == 'a' or kind == 'A' then
    aside(item, now)
  elseif kind == 'n' then
    redis.call('RENAME', key, T .. 'was:' .. int(now) .. ':' .. name)
  elseif before == after then
    -- It is only relied on.
  elseif kind == 'z' then
    if after == '' then redis.call('ZREM', key, item) else redis.call('ZADD', key, after, item) end
    local lane = after ~= '' and string.match(name, '^q:(.*)$')
    if lane then
      redis.call('SADD', T .. 'l', lane)
      wake(lane, 1)
    end
  elseif kind == 'k' then
    redis.call('SET', key, after)
  elseif kind == 's' then
    redis.call(after == '' and 'SREM' or 'SADD', key, item)
  elseif kind == 'h' then
    if after == '' then redis.call('HDEL', key, item) else redis.call('HSET', key, item, after) end
  elseif kind == 'l' then
    if after == '' then redis.call('LREM', key, 0, item) else redis.call('RPUSH', key, item) end
  end
end
return 1

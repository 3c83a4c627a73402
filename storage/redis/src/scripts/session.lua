#!lua flags=no-writes,allow-oom
-- Reads one session, or a page of them by id.
-- KEYS 1 meta
-- ARGV 1 sentinel 2 session, or empty for a page 3 id to go on behind, or empty 4 most
-- Replies: for each session: id, graph, last run or nothing, runs, its order
local out, ids = {}, {ARGV[2]}
if ARGV[2] == '' then
  local from = ARGV[3] == '' and '-' or '(' .. ARGV[3]
  ids = redis.call('ZRANGE', T .. 'sx', from, '+', 'BYLEX', 'LIMIT', 0, ARGV[4])
end
for _, id in ipairs(ids) do
  local fields = redis.call('HMGET', T .. 'S:' .. id, 'graph', 'last')
  if fields[1] then
    out[#out + 1] = {id, fields[1], fields[2], int(redis.call('ZCARD', T .. 'x:' .. id)),
      redis.call('LRANGE', T .. 's:' .. id, 0, 9999)}
  end
end
return out

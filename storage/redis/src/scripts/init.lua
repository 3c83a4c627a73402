#!lua flags=allow-oom
-- Makes the namespace's sentinel when there is none; but not when there are runs, unless the caller
-- joins whatever is there: then keys were deleted, and who knows which. Also in a full store:
-- whoever looks, answers or lets work end has to enter first.
-- KEYS 1 meta
-- ARGV 1 the sentinel to make 2 joins: 1 or 0
-- Replies: the sentinel, or nothing in it
local sentinel = redis.call('GET', KEYS[1])
if sentinel then return sentinel end
if ARGV[2] == '0' and redis.call('EXISTS', T .. 'ix') == 1 then return '' end
redis.call('SET', KEYS[1], ARGV[1])
return ARGV[1]

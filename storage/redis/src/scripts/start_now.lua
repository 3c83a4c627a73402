#!lua
-- Makes a scheduled run claimable before its time.
-- KEYS 1 meta
-- ARGV 1 sentinel 2 run
-- Replies: 1 done | 0 not scheduled | -1 no run
local run = ARGV[2]
local h = head(run)
if not h then return -1 end
if h.s ~= 's' then return 0 end
local now, what = clock(), turn(run, h)
redis.call('ZREM', T .. 'due', run)
redis.call('HSET', T .. 'r:' .. run, 's', 'q', 'v', int(now) .. '|' .. h.snap .. '|' .. h.tail)
enter(run, h, what)
tell(run, h.F, 'q')
return 1

#!lua flags=allow-oom
-- Puts runs aside that this program cannot read, though a script can.
-- KEYS 1 meta
-- ARGV 1 sentinel, then the runs
-- Replies: 1
local now = clock()
for i = 2, #ARGV do aside(ARGV[i], now) end
return 1

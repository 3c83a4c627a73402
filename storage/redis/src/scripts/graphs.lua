#!lua flags=no-writes,allow-oom
-- Reads the graphs that were published.
-- KEYS 1 meta
-- ARGV 1 sentinel
-- Replies: `first time|record` for each
return redis.call('HVALS', T .. 'graphs')

#!lua flags=allow-oom
-- Makes the namespace's sentinel when there is none. Also in a full store: whoever looks, answers
-- or lets work end has to enter first.
-- KEYS 1 meta
-- ARGV 1 the sentinel to make
-- Replies: the sentinel
redis.call('SETNX', KEYS[1], ARGV[1])
return redis.call('GET', KEYS[1])

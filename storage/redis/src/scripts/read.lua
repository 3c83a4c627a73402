#!lua flags=no-writes,allow-oom
-- Reads a run: its head, and what is asked for beside it, all of one moment.
-- KEYS 1 meta
-- ARGV 1 sentinel 2 run 3 what: head, payload, inbox, journal, checkpoint, questions 4 first
--   record and 5 most records (both only for journal)
-- Replies: nothing: no run | head, end of the lease or empty, then by what was asked: payload;
--   inbox; first, records; first, records, snapshot; questions
local run, what = ARGV[2], ARGV[3]
local h, flat = head(run)
if not h then return {} end
local out = {flat, h.s == 'r' and redis.call('ZSCORE', T .. 'lse', run) or ''}
if what == 'payload' then
  out[3] = redis.call('GET', T .. 'p:' .. run)
elseif what == 'inbox' then
  out[3] = redis.call('HGETALL', T .. 'i:' .. run)
elseif what == 'journal' then
  out[3] = ARGV[4]
  out[4] = redis.call('LRANGE', T .. 'j:' .. run, ARGV[4], int(ARGV[4] + ARGV[5] - 1))
elseif what == 'checkpoint' then
  out[3] = h.snap
  out[4] = redis.call('LRANGE', T .. 'j:' .. run, h.snap, -1)
  out[5] = redis.call('GET', T .. 'z:' .. run)
elseif what == 'questions' then
  out[3] = redis.call('HGETALL', T .. 'o:' .. run)
end
return out

#!lua flags=allow-oom
-- Puts a run that its owner hands back into its old place, claimable now; the claim does not count
-- as one that lost its worker.
-- KEYS 1 meta
-- ARGV 1 sentinel 2 run 3 epoch 4 nonce
-- Replies: 1 done | 0 fenced
local run = ARGV[2]
local h = head(run)
if not h or h.s ~= 'r' or h.e ~= ARGV[3] or h.o ~= ARGV[4] then return 0 end
local now, what = clock(), turn(run, h)
disown(run, h.worker)
redis.call('HSET', T .. 'r:' .. run, 's', 'q', 'o', '', 'v',
  int(now) .. '|' .. h.snap .. '|' .. h.tail,
  'c', h.claims .. '|' .. int(math.max(h.row - 1, 0)) .. '|' .. int(math.max(h.life - 1, 0)))
depth(h.queue, 1)
watch(run, h)
enter(run, h, what)
tell(run, h.F, 'q')
return 1

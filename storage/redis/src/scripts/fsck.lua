#!lua flags=no-writes,allow-oom
-- Compares a part of one index with the heads of its runs, or a part of the list of all runs with
-- the indexes: each run is in the one place that its state names.
-- KEYS 1 meta
-- ARGV 1 sentinel 2 index: ix, due, wak, prk, lse, fin, can, dead, their `.l`, bad, or q:LANE
--   3 first row 4 most rows
-- Replies: how many rows there were, then for each fault: run, what is wrong
local name, out = ARGV[2], {}
local rows = redis.call('ZRANGE', T .. name, ARGV[3], int(ARGV[3] + ARGV[4] - 1))
out[1] = int(#rows)
local states = {due = 's', wak = 'p', prk = 'p', lse = 'r', fin = 'c', can = 'x', dead = 'f'}
local places = {s = 'due', p = 'prk', r = 'lse', c = 'fin', x = 'can', f = 'dead'}
local function fault(run, text) out[#out + 1] = {run, text} end
for _, run in ipairs(rows) do
  local good, h = pcall(head, run)
  if name == 'bad' then
    fault(run, 'was put aside because it could not be read')
  elseif not good then
    fault(run, 'cannot be read')
  elseif not h then
    fault(run, 'is in ' .. name .. ' and does not exist')
  elseif name ~= 'ix' then
    local wanted = states[string.match(name, '^%a+')] or 'q'
    if h.s ~= wanted then fault(run, 'is in ' .. name .. ' but its state is ' .. h.s) end
  else
    local place = places[h.s] or 'q:' .. h.lane
    local found = redis.call('ZSCORE', T .. place, run)
      or string.find('cfx', h.s) and redis.call('ZSCORE', T .. place .. '.l', run)
    if not found and h.s == 'q' and h.session ~= '' then
      local order = T .. 's:' .. h.session
      found = redis.call('LINDEX', order, 0) ~= run and redis.call('LPOS', order, run)
    end
    if not found then fault(run, 'has the state ' .. h.s .. ' but is not in ' .. place) end
  end
end
return out

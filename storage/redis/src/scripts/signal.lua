#!lua flags=allow-oom
-- Stores an answer for one question, the first one only, and wakes the run when it is parked.
-- Nothing is consumed or written on a refusal.
-- KEYS 1 meta
-- ARGV 1 sentinel 2 run 3 request 4 address: iID, gNAME or `?` 5 hash of the arguments or empty
--   6 record 7 voter, or empty when one answer decides 8 choice 9 votes for it that decide
--   10 length of the journal in which the gate has not opened, or empty
-- Replies: D id vote repeat: delivered | K: kept for the gate | N: no run | E state: has ended
--   | O: not open | Q: no question | M ids: ambiguous | H hash: other arguments | V record: decided
--   before | T: has voted before | L: the journal has another length
local run, request, address = ARGV[2], ARGV[3], ARGV[4]
local h = head(run)
if not h then return {'N'} end
if string.find('cfx', h.s) then return {'E', h.s} end
if ARGV[10] ~= '' and ARGV[10] ~= h.len then return {'L'} end
local kind, name = string.sub(address, 1, 1), string.sub(address, 2)
local open = redis.call('HGETALL', T .. 'o:' .. run)
local fits, found = {}, nil
for i = 1, #open, 2 do
  local at, hash, gate, votes = string.match(open[i + 1], '^(%d+)\n([^\n]*)\n([^\n]*)\n(.*)$')
  if not at then corrupt(run, 'question ' .. open[i] .. ' is cut or altered') end
  if (kind == 'i' and name == open[i]) or (kind == 'g' and gate == address) or kind == '?' then
    found = {open[i], hash, gate, at, votes}
    fits[#fits + 1] = found
  end
end
-- A record is stored behind the request that brought it.
local function stored(key)
  local value = redis.call('HGET', T .. 'i:' .. run, key)
  if not value then return nil end
  return string.match(value, '^([^\n]*)\n(.*)$')
end
if #fits > 1 then
  table.sort(fits, function(a, b)
    return before(a[4] .. ' ' .. a[1], b[4] .. ' ' .. b[1])
  end)
  local ids = {}
  for n, fit in ipairs(fits) do ids[n] = fit[1] end
  return {'M', ids}
end
if not found then
  if kind == '?' then return {'Q'} end
  if kind == 'i' then return {'O'} end
  local by, record = stored(address)
  if by == request then return {'K'} end
  if by then return {'V', record} end
  redis.call('HSET', T .. 'i:' .. run, address, request .. '\n' .. ARGV[6])
  redis.call('HSET', T .. 'r:' .. run, 'i', '1')
  tell(run, h.F, 'i')
  return {'K'}
end
if ARGV[5] ~= '' and ARGV[5] ~= found[2] then return {'H', found[2]} end
local by, record = stored('i' .. found[1])
if by == request then return {'D', found[1], '0', '1'} end
if by then return {'V', record} end
if found[3] ~= '' then
  by, record = stored(found[3])
  if by == request then return {'D', found[1], '0', '1'} end
  if by then return {'V', record} end
end
local slot, same = 'i' .. found[1], 1
local function count(choice, voter)
  if choice == ARGV[8] then same = same + 1 end
  return voter == ARGV[7]
end
if ARGV[7] ~= '' then
  for choice, voter in string.gmatch(found[5], '([^| ]+)|([^| ]+)') do
    if count(choice, voter) then return {'T'} end
  end
  local start = 'v' .. found[1] .. '|'
  for _, cast in ipairs(redis.call('HKEYS', T .. 'i:' .. run)) do
    if string.sub(cast, 1, #start) == start then
      local choice, voter = string.match(string.sub(cast, #start + 1), '^([^|]*)|(.*)$')
      if count(choice, voter) then
        if stored(cast) == request then return {'D', found[1], '1', '1'} end
        return {'T'}
      end
    end
  end
  if same < tonumber(ARGV[9]) then slot = start .. ARGV[8] .. '|' .. ARGV[7] end
end
local what = h.s == 'p' and turn(run, h)
redis.call('HSET', T .. 'i:' .. run, slot, request .. '\n' .. ARGV[6])
redis.call('HSET', T .. 'r:' .. run, 'i', '1')
if what then
  local now = clock()
  redis.call('ZREM', T .. 'prk', run)
  redis.call('ZREM', T .. 'wak', run)
  redis.call('HSET', T .. 'r:' .. run, 's', 'q', 'v', int(now) .. '|' .. h.snap .. '|' .. h.tail)
  depth(h.queue, 1)
  enter(run, h, what)
end
tell(run, h.F, 'i')
return {'D', found[1], string.sub(slot, 1, 1) == 'v' and '1' or '0', '0'}

#!lua flags=allow-oom
-- Stores answers of one call, all or none, each for one question and the first one only, and
-- wakes the run when it is parked. Nothing is consumed or written on a refusal.
-- KEYS 1 meta
-- ARGV 1 sentinel 2 run, then 8 for each answer: request, address (iID, gNAME or `?`), hash of the
--   arguments or empty, record, voter (empty when one answer decides), choice, votes for it that
--   decide, length of the journal in which the gate has not opened, or empty
-- Replies: A, then one for each answer | R index one: the first that is refused.
--   One is D id vote repeat: delivered | K: kept for the gate | N: no run | E state: has ended
--   | O: not open | Q: no question | M ids: ambiguous | H hash: other arguments | V record: decided
--   before | T: has voted before | L: the journal has another length
local run = ARGV[2]
local h = head(run)
if not h then return {'R', '0', {'N'}} end
if string.find('cfx', h.s) then return {'R', '0', {'E', h.s}} end
local open, stored_open = {}, redis.call('HGETALL', T .. 'o:' .. run)
for i = 1, #stored_open, 2 do
  local at, hash, gate, votes =
    string.match(stored_open[i + 1], '^(%d+)\n([^\n]*)\n([^\n]*)\n([^\n]*)\n')
  if not at then corrupt(run, 'question ' .. stored_open[i] .. ' is cut or altered') end
  open[#open + 1] = {stored_open[i], hash, gate, at, votes}
end
-- What this call brings is seen by its later answers before any of it is written. A record stands
-- behind the request that brought it.
local new, slots, is_delivered = {}, {}, false
local function stored(key)
  local value = new[key] or redis.call('HGET', T .. 'i:' .. run, key)
  if not value then return nil end
  return string.match(value, '^([^\n]*)\n(.*)$')
end
local function put(slot, request, record)
  new[slot] = request .. '\n' .. record
  slots[#slots + 1] = slot
end
-- The votes on a question that decide nothing yet; an answer that is one of them is told so.
local function voted(found, request, voter, choice)
  local same = 1
  local function count(for_what, who)
    if for_what == choice then same = same + 1 end
    return who == voter
  end
  for for_what, who in string.gmatch(found[5], '([^| ]+)|([^| ]+)') do
    if count(for_what, who) then return nil, {'T'} end
  end
  local start = 'v' .. found[1] .. '|'
  for _, keys in ipairs({redis.call('HKEYS', T .. 'i:' .. run), slots}) do
    for _, cast in ipairs(keys) do
      if string.sub(cast, 1, #start) == start then
        if count(string.match(string.sub(cast, #start + 1), '^([^|]*)|(.*)$')) then
          if stored(cast) == request then return nil, {'D', found[1], '1', '1'} end
          return nil, {'T'}
        end
      end
    end
  end
  return same
end
-- Judges the answer whose arguments begin at `n`: the reply, and whether it is taken.
local function judge(n)
  local request, address, args, record, voter, choice, needed, length = unpack(ARGV, n, n + 7)
  if length ~= '' and length ~= h.len then return {'L'} end
  local kind, name = string.sub(address, 1, 1), string.sub(address, 2)
  local fits = {}
  for _, asked in ipairs(open) do
    local is_it = (kind == 'i' and name == asked[1]) or (kind == 'g' and asked[3] == address)
    if is_it or kind == '?' then fits[#fits + 1] = asked end
  end
  if #fits > 1 then
    table.sort(fits, function(a, b)
      return before(a[4] .. ' ' .. a[1], b[4] .. ' ' .. b[1])
    end)
    local ids = {}
    for i, fit in ipairs(fits) do ids[i] = fit[1] end
    return {'M', ids}
  end
  local found = fits[1]
  if not found then
    if kind == '?' then return {'Q'} end
    if kind == 'i' then return {'O'} end
    local by, first = stored(address)
    if by and by ~= request then return {'V', first} end
    if not by then put(address, request, record) end
    return {'K'}, true
  end
  if args ~= '' and args ~= found[2] then return {'H', found[2]} end
  for _, slot in ipairs({'i' .. found[1], found[3] ~= '' and found[3] or nil}) do
    local by, first = stored(slot)
    if by == request then return {'D', found[1], '0', '1'}, true end
    if by then return {'V', first} end
  end
  local slot, is_vote = 'i' .. found[1], '0'
  if voter ~= '' then
    local same, told = voted(found, request, voter, choice)
    if told then return told, told[1] == 'D' end
    if same < tonumber(needed) then
      slot, is_vote = 'v' .. found[1] .. '|' .. choice .. '|' .. voter, '1'
    end
  end
  put(slot, request, record)
  is_delivered = true
  return {'D', found[1], is_vote, '0'}, true
end
local replies = {'A'}
for n = 3, #ARGV, 8 do
  local reply, is_taken = judge(n)
  if not is_taken then return {'R', int((n - 3) / 8), reply} end
  replies[#replies + 1] = reply
end
if #slots == 0 then return replies end
local what = is_delivered and h.s == 'p' and turn(run, h)
for _, slot in ipairs(slots) do redis.call('HSET', T .. 'i:' .. run, slot, new[slot]) end
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
return replies

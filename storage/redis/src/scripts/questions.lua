#!lua flags=no-writes,allow-oom
-- Finds open questions behind a place in the order of their lists: in all lists of the group that
-- has the fewest, each question once. A place is found by halves, whether it is taken or not. Of
-- what does not stand in a list of each other group nothing is read.
-- KEYS 1 meta
-- ARGV 1 sentinel 2 kinds in which each list is read, with blanks between them 3 number of the
--   last row, or empty 4 id of the last row 5 most rows, then the groups: names of lists, with
--   blanks between them
-- Replies: for each row: number, id, and behind them, if it stands in all groups and can be read,
--   head of the run, end of its lease or empty, the question as it is stored
local at, last, most = ARGV[3], ARGV[4], tonumber(ARGV[5])
local groups, sources, least = {}, {}, nil
for i = 6, #ARGV do
  local found, count = {}, 0
  for list in string.gmatch(ARGV[i], '[^ ]+') do
    for kind in string.gmatch(ARGV[2], '[^ ]+') do
      local key = T .. kind .. ':' .. list
      local rows = redis.call('ZCARD', key)
      if rows > 0 then found[#found + 1] = key end
      count = count + rows
    end
  end
  groups[#groups + 1] = found
  if not least or count < least then sources, least = found, count end
end
local function stands_in(group, item)
  for _, key in ipairs(group) do
    if redis.call('ZSCORE', key, item) then return true end
  end
  return false
end
local function is_wanted(item)
  for _, group in ipairs(groups) do
    if group ~= sources and not stands_in(group, item) then return false end
  end
  return true
end
-- How many rows of a list are not behind the place.
local function passed(key)
  if at == '' then return 0 end
  local low = redis.call('ZCOUNT', key, '-inf', '(' .. at)
  local high = low + redis.call('ZCOUNT', key, at, at)
  while low < high do
    local middle = math.floor((low + high) / 2)
    if before(last, redis.call('ZRANGE', key, middle, middle)[1]) then
      high = middle
    else
      low = middle + 1
    end
  end
  return low
end
-- The rows of all sources that come next, each with its own place in its source.
local nexts = {}
for _, key in ipairs(sources) do
  local first = passed(key)
  local rows = redis.call('ZRANGE', key, first, int(first + most - 1), 'WITHSCORES')
  if #rows > 0 then nexts[#nexts + 1] = {rows = rows, i = 1} end
end
local function first()
  local best, id, number
  for _, source in ipairs(nexts) do
    local member, score = source.rows[source.i], source.rows[source.i + 1]
    if member then
      local value = tonumber(score)
      if not best or value < number or (value == number and before(member, id)) then
        best, id, number = source, member, value
      end
    end
  end
  return best
end
local out, count, newest = {}, 0, nil
while count < most do
  local source = first()
  if not source then break end
  local item, score = source.rows[source.i], source.rows[source.i + 1]
  source.i = source.i + 2
  if item ~= newest then
    newest, count = item, count + 1
    local id, run = string.match(item, '^([^ ]+) (.+)$')
    local row = {score, item}
    if run and is_wanted(item) then
      local good, h, flat, value = look(run, function(of)
        return redis.call('HGET', T .. 'o:' .. of, id)
      end)
      if good and h and value then
        row[3], row[5] = flat, value
        row[4] = h.s == 'r' and redis.call('ZSCORE', T .. 'lse', run) or ''
      end
    end
    out[count] = row
  end
end
return out

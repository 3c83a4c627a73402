#!lua flags=allow-oom
-- What `commit` does, for several owners at once that only write records, and go on or end: most
-- commits are this. Each is judged and answered for itself, all of them before the first write.
-- The end of a run of a session, or of one with questions or answers, is left to `commit`, and so
-- is a second commit to the same run.
-- KEYS 1 meta
-- ARGV 1 sentinel, then for each: run, epoch, nonce, request digest, `length:hash` before and
--   after, lease in ms or 0, disposition: c Fc Fx FfWORD, progress: 1 or 0, pin: fingerprint or
--   empty, number of records, and they
-- Replies: now, then for each: A and the state, with the inbox when there is one, F, S and the
--   length, or C, all as `commit`; M: it is for `commit`, and nothing was done
local now = clock()
local at = int(now)
local out, plans, seen = {at}, {}, {}
local function done(run, state, has_inbox)
  local code = 'A' .. state
  return has_inbox and {code, redis.call('HGETALL', T .. 'i:' .. run)} or code
end
-- The answer to the commit whose arguments begin at `i`, with a plan when it is to be written.
local function judge(i, first, last)
  local run, epoch, request, what, pin = ARGV[i], ARGV[i + 1], ARGV[i + 3], ARGV[i + 7], ARGV[i + 9]
  if seen[run] then return 'M' end
  seen[run] = true
  local v = redis.call('HMGET', T .. 'r:' .. run, 's', 'e', 'n', 'v', 'c', 'q', 'o', 'a', 'w', 'x',
    'y', 'i', 'F', 'Q')
  if not v[1] or not v[3] or not v[6] then error(gone(run)) end
  if v[2] ~= epoch then num(v[2], run, 'its epoch') end
  if known(v[6], request) then return done(run, v[1], v[12]) end
  if v[1] ~= 'r' or v[2] ~= epoch or v[7] ~= ARGV[i + 2] then return 'F' end
  local length = string.match(v[3], '^%d+')
  if v[3] ~= ARGV[i + 4] then return 'S' .. int(num(length, run, 'its length')) end
  local ends = what ~= 'c'
  if v[10] and what ~= 'Fx' then return 'C' end
  local snapshot, tail = string.match(v[4] or '', '^%d+(|%d+|)(%d+)$')
  local claims, row, life = string.match(v[5] or '', '^(%d+)|(%d+)|(%d+)$')
  if not (tail and life) then corrupt(run, 'its header is cut or altered') end
  local fails = ends and string.sub(what, 2, 2) == 'f'
  if not fails and redis.call('LLEN', T .. 'j:' .. run) ~= tonumber(length) then
    corrupt(run, 'its journal has another length than its header says')
  end
  for record = first, last do tail = tail + #ARGV[record] end
  local moved, requests = at .. snapshot .. int(tail), v[6] .. request
  if #requests > 64 then requests = string.sub(requests, -64) end
  -- Written out, and not added to one by one: a table that grows is copied.
  local fields, state, worker, lane = nil, 'r', false, false
  if ends then
    local session = string.match(v[8] or '', '^[^|]+|[^|]+|([^|]*)$')
    worker = string.match(v[9] or '', '^([^|]+)|')
    if not (session and worker) then corrupt(run, 'its header is cut or altered') end
    if session ~= '' or v[12] or v[14] then return 'M' end
    state = string.sub(what, 2, 2)
    fields = {'n', ARGV[i + 5], 'v', moved, 'q', requests, 's', state, 'o', '', 'f', at,
      'c', claims .. '|0|' .. int(math.max(life - 1, 0))}
    if fails then
      fields[15], fields[16] = 'r', string.sub(what, 3)
    end
  elseif ARGV[i + 8] == '1' and row ~= '1' then
    fields = {'n', ARGV[i + 5], 'v', moved, 'q', requests, 'c', claims .. '|1|' .. life}
  else
    fields = {'n', ARGV[i + 5], 'v', moved, 'q', requests}
  end
  if pin ~= '' then
    local graph, queue = string.match(v[8] or '', '^([^|]+)|([^|]+)|')
    if not queue then corrupt(run, 'its header is cut or altered') end
    fields[#fields + 1] = 'l'
    fields[#fields + 1] = pin
    lane = lane_of({queue = queue, graph = graph}, pin)
  end
  plans[#plans + 1] = {run = run, first = first, last = last, fields = fields, lane = lane,
    lease = ARGV[i + 6], has_losses = v[11] and last >= first, is_followed = v[13], state = state,
    worker = worker}
  return done(run, state, v[12])
end
local i = 2
while i <= #ARGV do
  local first = i + 11
  local last = i + 10 + ARGV[i + 10]
  out[#out + 1] = judge(i, first, last)
  i = last + 1
end
-- All is read; now write.
local lanes, leases, ended, held, places = {}, {}, {}, {}, {}
for _, plan in ipairs(plans) do
  local run, journal, state = plan.run, T .. 'j:' .. plan.run, plan.state
  for first = plan.first, plan.last, 1000 do
    redis.call('RPUSH', journal, unpack(ARGV, first, math.min(first + 999, plan.last)))
  end
  redis.call('HSET', T .. 'r:' .. run, unpack(plan.fields))
  if plan.has_losses then redis.call('HDEL', T .. 'r:' .. run, 'y') end
  if plan.lane then lanes[plan.lane] = true end
  if state ~= 'r' then
    local of_worker, of_state = held[plan.worker] or {}, places[state] or {}
    held[plan.worker], places[state] = of_worker, of_state
    ended[#ended + 1], of_worker[#of_worker + 1] = run, run
    of_state[#of_state + 1] = at
    of_state[#of_state + 1] = run
  elseif plan.lease ~= '0' then
    leases[#leases + 1] = int(now + plan.lease)
    leases[#leases + 1] = run
  end
  tell(run, plan.is_followed, state)
end
for lane in pairs(lanes) do redis.call('SADD', T .. 'l', lane) end
if #leases > 0 then redis.call('ZADD', T .. 'lse', unpack(leases)) end
if #ended > 0 then redis.call('ZREM', T .. 'lse', unpack(ended)) end
for worker, runs in pairs(held) do redis.call('SREM', T .. 'h:' .. worker, unpack(runs)) end
for state, runs in pairs(places) do
  redis.call('ZADD', T .. (({c = 'fin', x = 'can', f = 'dead'})[state]), unpack(runs))
end
return out

-- claim.lua: bring back lapsed leases and due items, then lease what is ready.
--
-- KEYS  prefix
-- ARGV  now           epoch ms, or '' for the server's time
--       token         of every lease of this claim
--       lease         how long, ms
--       worker
--       start_now     how many of the items start at once
--       step          how many lapsed leases and due items are brought back at most
--       queue max ... in the order in which they are served
-- REPLY {now, more, next due or false, items...}
--       item: {id, queue, body, attempt, startAt, fence, lapses or false, crashes or false, deliveries, met or false, started}
local prefix = KEYS[1]
local call = redis.call
local now = tonumber(ARGV[1])
if not now then
  local time = call('TIME')
  now = time[1] * 1000 + math.floor(time[2] / 1000)
end
local token, lease, worker = ARGV[2], tonumber(ARGV[3]), ARGV[4]
local start_now, step = tonumber(ARGV[5]), ARGV[6]
local FIRST_QUEUE = 7
local until_at = now + lease
local ITEM, BODY, LEASES = prefix .. ':item:', prefix .. ':body:', prefix .. ':leases'
-- The arrival number and a colon stand before the id in a ready set.
local ID_AT = 18

local function make_ready(id, queue, priority, due, seq)
  call('ZADD', prefix .. ':priorities:' .. queue, -tonumber(priority), priority)
  call('ZADD', prefix .. ':ready:' .. queue .. ':' .. priority, due, string.format('%016d:', seq) .. id)
end

-- A lapsed item keeps its due time and hence its place.
for _, id in ipairs(call('ZRANGEBYSCORE', LEASES, '-inf', now, 'LIMIT', 0, step)) do
  local key = ITEM .. id
  local row = call('HMGET', key, 'queue', 'priority', 'due', 'seq', 'runAt')
  call('HINCRBY', key, 'lapses', 1)
  if row[5] then call('HINCRBY', key, 'crashes', 1) end
  call('HSET', key, 'state', 'pending')
  call('HDEL', key, 'token', 'until', 'worker', 'runAt')
  call('ZREM', LEASES, id)
  make_ready(id, row[1], row[2], row[3], row[4])
end

local reply = { now, 0, false }
local taken_all = 0
local leases, bodies = {}, {}
for i = FIRST_QUEUE, #ARGV, 2 do
  local queue, max = ARGV[i], tonumber(ARGV[i + 1])
  local later = prefix .. ':later:' .. queue

  -- A hold ends with its time.
  for _, id in ipairs(call('ZRANGEBYSCORE', later, '-inf', now, 'LIMIT', 0, step)) do
    local row = call('HMGET', ITEM .. id, 'priority', 'due', 'seq')
    call('ZREM', later, id)
    make_ready(id, queue, row[1], row[2], row[3])
  end

  local priorities = prefix .. ':priorities:' .. queue
  for _, priority in ipairs(call('ZRANGE', priorities, 0, -1)) do
    local ready = prefix .. ':ready:' .. queue .. ':' .. priority
    local taken = max > 0 and call('ZPOPMIN', ready, max) or {}
    for j = 1, #taken, 2 do
      local id = string.sub(taken[j], ID_AT)
      local key = ITEM .. id
      local row = call('HMGET', key, 'attempt', 'startAt', 'fence', 'lapses', 'crashes', 'deliveries', 'met', 'holdBy')
      local fence, deliveries = tonumber(row[3] or '0') + 1, tonumber(row[6] or '0') + 1
      local started = taken_all < start_now
      if started then
        call('HSET', key, 'state', 'running', 'token', token, 'until', until_at, 'worker', worker, 'fence', fence,
          'deliveries', deliveries, 'runAt', now)
      else
        call('HSET', key, 'state', 'running', 'token', token, 'until', until_at, 'worker', worker, 'fence', fence,
          'deliveries', deliveries)
      end
      if row[8] then call('HDEL', key, 'holdBy', 'holdKey') end
      taken_all = taken_all + 1
      leases[#leases + 1], leases[#leases + 2], bodies[taken_all] = until_at, id, BODY .. id
      reply[3 + taken_all] = { id, queue, false, row[1], row[2], fence, row[4], row[5], deliveries, row[7], started and 1 or 0 }
      max = max - 1
    end
    if call('EXISTS', ready) == 0 then call('ZREM', priorities, priority) else reply[2] = 1 end
  end

  local first = call('ZRANGE', later, 0, 0, 'WITHSCORES')
  if first[2] then
    local due = tonumber(first[2])
    if due <= now then reply[2] = 1 elseif not reply[3] or due < reply[3] then reply[3] = due end
  end
end

-- One call for many: calls are what a script spends its time on.
local CHUNK = 1000
for first = 1, #leases, CHUNK do
  call('ZADD', LEASES, unpack(leases, first, math.min(first + CHUNK - 1, #leases)))
end
for first = 1, taken_all, CHUNK do
  local found = call('MGET', unpack(bodies, first, math.min(first + CHUNK - 1, taken_all)))
  for i, body in ipairs(found) do reply[3 + first + i - 1][3] = body end
end
return reply

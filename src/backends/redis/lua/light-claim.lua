-- light-claim.lua: leases the next items of one type, if nothing has to be done first and all of them are light (records.lua).
--
-- ARGV  now, key of the claim, lease (ms), worker, queue, max, how many rooms, and for each: max, how many types, types...
-- REPLY false: claim.lua has to look; else now, more, next due or false, whether ended items can be removed (1 or 0), number of the
--       claim, {ids}, {texts}; without the last three there is none
local queue, max = ARGV[5], tonumber(ARGV[6])
-- Pauses, and plain messages.
local in_the_way = call('EXISTS', prefix .. ':pauses', prefix .. ':resuming', prefix .. ':message-priorities:' .. queue,
  prefix .. ':message-delayed:' .. queue, prefix .. ':message-leases:' .. queue)
if in_the_way > 0 then return false end
-- Lapsed leases, expired items.
local now_text = string.format('%.0f', now)
if #call('ZRANGEBYSCORE', prefix .. ':leases:' .. queue, '-inf', now_text, 'LIMIT', 0, 1) > 0 then return false end
if #call('ZRANGEBYSCORE', prefix .. ':claim-ends:' .. queue, '-inf', now_text, 'LIMIT', 0, 1) > 0 then return false end
if #call('ZRANGEBYSCORE', prefix .. ':expiring:' .. queue, '-inf', now_text, 'LIMIT', 0, 1) > 0 then return false end
local next_due = tonumber(call('ZRANGE', prefix .. ':delayed:' .. queue, 0, 0, 'WITHSCORES')[2] or nil)
if next_due and next_due <= now then return false end
local is_over = #call('ZRANGEBYSCORE', prefix .. ':retention', '-inf', now_text, 'LIMIT', 0, 1)

-- The one type that waits.
local queue_type, at = nil, 8
for _ = 1, tonumber(ARGV[7]) do
  local room, last = tonumber(ARGV[at]), at + 1 + tonumber(ARGV[at + 1])
  for i = at + 2, last do
    local name = #queue .. ':' .. queue .. ARGV[i]
    if call('EXISTS', prefix .. ':priorities:' .. name) == 1 then
      if queue_type or room <= 0 then return false end
      queue_type, max = name, math.min(max, room)
    end
  end
  at = last + 1
end
if not queue_type or max <= 0 then return { now, 0, next_due or false, is_over } end

local PRIORITIES = prefix .. ':priorities:' .. queue_type
local names = call('ZRANGE', PRIORITIES, 0, 1)
if #names > 1 then return false end
local ready = prefix .. ':ready:' .. names[1] .. ':' .. queue_type
local ids = call('ZRANGE', ready, 0, max - 1)
local n = #ids
if n == 0 then return false end
for i = 1, n do ids[i] = string.sub(ids[i], 13) end
local texts = call('HMGET', prefix .. ':items', unpack(ids, 1, n))
local long
for i = 1, n do
  local text = texts[i]
  -- 'h'
  if not text or string.byte(text) ~= 104 then return false end
  -- Its input is kept apart.
  if string.byte(text, -1) == 30 then
    long = long or {}
    long[#long + 1] = i
  end
end
if long then
  local apart = {}
  for i = 1, #long do apart[i] = ids[long[i]] end
  local inputs = call('HMGET', prefix .. ':inputs', unpack(apart))
  for i = 1, #long do texts[long[i]] = texts[long[i]] .. (inputs[i] or '') end
end

-- As in claim.lua: it rises with every claim, and is odd.
local no = string.format('%.0f', math.max((tonumber(call('GET', prefix .. ':claim-seq') or '-1')) + 2, now * 2048 + 1))
-- A removal comes first: a full server lets a script that begins with one finish.
call('ZREMRANGEBYRANK', ready, 0, n - 1)
local adds = {}
for i = 1, n do adds[2 * i - 1], adds[2 * i] = no, ids[i] end
call('ZADD', prefix .. ':index:a:' .. queue_type, unpack(adds, 1, 2 * n))
call('HSET', prefix .. ':claims', no, string.format('%013d', now) .. queue_type .. '\30' .. ARGV[2] .. '\30' .. ARGV[4])
call('ZADD', prefix .. ':claim-ends:' .. queue, now + tonumber(ARGV[3]), no)
call('SET', prefix .. ':claim-seq', no)
local COUNTS = prefix .. ':counts'
if call('HINCRBY', COUNTS, 'w' .. queue_type, -n) == 0 then call('HDEL', COUNTS, 'w' .. queue_type) end
call('HINCRBY', COUNTS, 'a' .. queue_type, n)
local more = call('EXISTS', ready)
if more == 0 then call('ZREM', PRIORITIES, names[1]) end
return { now, more, next_due or false, is_over, no, ids, texts }

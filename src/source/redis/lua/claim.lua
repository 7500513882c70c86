-- claim.lua: takes what is due: what was put back, what was not settled in time, what is new. The group's own list says who holds
-- a message, since when, and how often it began to run; being fetched is no start, so it counts from 0.
-- ARGV … leaseMs, max, cursor of the search for lapsed leases ('' = no search now)
-- REPLY cursor to go on with ('' = the search is over), ms until the next one is due (-1 = none), last id of the stream (when nothing
--       was found), messages: { id, starts, note, fields }
local leaseMs, max, cursor = tonumber(ARGV[3]), tonumber(ARGV[4]), ARGV[5]
local now = nowMs()
local taken = {}

local function take(id)
  local pending = pendingOf(id)
  if not pending then return end
  local starts = pending[4]
  local entry = redis.call('XCLAIM', stream, group, me, 0, id, 'RETRYCOUNT', starts)[1]
  if entry then
    taken[#taken + 1] = { id, starts, redis.call('HGET', notes, id) or '', entry[2] }
  else
    -- Trimmed from the stream while it was out: there is nothing left to deliver.
    redis.call('XACK', stream, group, id)
    redis.call('HDEL', notes, id)
  end
end

for _, filled in ipairs(redis.call('ZRANGEBYSCORE', due, '-inf', now, 'LIMIT', 0, max)) do
  redis.call('ZREM', due, filled)
  take(idOf(filled))
end

if cursor ~= '' and #taken < max then
  local found = redis.call('XAUTOCLAIM', stream, group, me, leaseMs, cursor, 'COUNT', max - #taken, 'JUSTID')
  cursor = found[1] == '0-0' and '' or found[1]
  for _, id in ipairs(found[2]) do
    -- What was put back and is not due yet is held by no consumer: that it was claimed here changes nothing.
    if not redis.call('ZSCORE', due, member(id)) then take(id) end
  end
end

if #taken < max then
  local read = redis.call('XREADGROUP', 'GROUP', group, me, 'COUNT', max - #taken, 'STREAMS', stream, '>')
  if read then
    local uncounted = { stream, group, me, 0 }
    local areSomeBack = redis.call('EXISTS', due, notes) > 0
    for _, entry in ipairs(read[1][2]) do
      uncounted[#uncounted + 1] = entry[1]
      -- Delivered anew by a seek, it is as if it had never been put back.
      if areSomeBack then
        redis.call('ZREM', due, member(entry[1]))
        redis.call('HDEL', notes, entry[1])
      end
      taken[#taken + 1] = { entry[1], 0, '', entry[2] }
    end
    for _, word in ipairs({ 'RETRYCOUNT', 0, 'JUSTID' }) do uncounted[#uncounted + 1] = word end
    redis.call('XCLAIM', unpack(uncounted))
  end
end

local nextDue, lastId = -1, ''
local first = redis.call('ZRANGE', due, 0, 0, 'WITHSCORES')
if first[2] then nextDue = math.max(0, first[2] - now) end
if #taken == 0 then
  local info = redis.call('XINFO', 'STREAM', stream)
  for i = 1, #info, 2 do
    if info[i] == 'last-generated-id' then lastId = info[i + 1] end
  end
end
return { cursor, nextDue, lastId, taken }

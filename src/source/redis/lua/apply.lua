-- apply.lua: what became of messages, many in one call. Each is fenced: only its present holder changes anything.
-- ARGV … then for each: what, id, and three words more
--   ack      has a note (1 or '')
--   nak      delay in ms, starts, note
--   term     dead-letter stream ('' = none), JSON list of fields to add to the letter, has a note
--   extend
--   start    starts
--   release
-- REPLY for each: 1 done, 0 held by another consumer, 2 not in the list of the group (it has been settled), or the text of an error
local replies = {}

local function hold(id, ...)
  redis.call('XCLAIM', stream, group, me, 0, id, ...)
end

local apply = {
  ack = function(id, hasNote)
    redis.call('XACK', stream, group, id)
    if hasNote ~= '' then redis.call('HDEL', notes, id) end
  end,
  nak = function(id, delayMs, starts, note)
    hold(id, 'RETRYCOUNT', starts, 'JUSTID')
    redis.call('ZADD', due, nowMs() + delayMs, member(id))
    if note == '' then redis.call('HDEL', notes, id) else redis.call('HSET', notes, id, note) end
  end,
  term = function(id, letters, added, hasNote)
    if letters ~= '' then
      local entry = redis.call('XRANGE', stream, id, id)[1]
      local letter = { letters, '*' }
      for _, word in ipairs(entry and entry[2] or {}) do letter[#letter + 1] = word end
      for _, word in ipairs(cjson.decode(added)) do letter[#letter + 1] = word end
      local kept = redis.pcall('XADD', unpack(letter))
      if type(kept) == 'table' and kept.err then return kept.err end
    end
    redis.call('XACK', stream, group, id)
    if hasNote ~= '' then redis.call('HDEL', notes, id) end
  end,
  extend = function(id) hold(id, 'JUSTID') end,
  start = function(id, starts) hold(id, 'RETRYCOUNT', starts, 'JUSTID') end,
  release = function(id) redis.call('ZADD', due, 0, member(id)) end,
}

for i = 3, #ARGV, 5 do
  local what, id = ARGV[i], ARGV[i + 1]
  local pending = pendingOf(id)
  if not pending then
    replies[#replies + 1] = 2
  elseif pending[2] ~= me then
    replies[#replies + 1] = 0
  else
    replies[#replies + 1] = apply[what](id, ARGV[i + 2], ARGV[i + 3], ARGV[i + 4]) or 1
  end
end
return replies

-- dead-letters.lua: what was dead-lettered on a queue: a hash from id to letter (JSON), and the order of arrival.
--
-- The oldest are removed when there are too many. One with the same id is replaced, and comes to the end.
local function letters_of(queue)
  return prefix .. ':dead-letters:' .. queue, prefix .. ':dead-letter-order:' .. queue
end

local function bury(queue, id, entry, most)
  local letters, order = letters_of(queue)
  call('HSET', letters, id, entry)
  call('ZADD', order, call('INCR', prefix .. ':dead-letter-seq'), id)
  local surplus = call('ZCARD', order) - most
  if surplus > 0 then
    local oldest = call('ZRANGE', order, 0, surplus - 1)
    for _, one in ipairs(oldest) do
      call('ZREM', order, one)
      call('HDEL', letters, one)
    end
  end
end

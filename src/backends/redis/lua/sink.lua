-- sink.lua: the dead letters of a plain queue.
--
-- ARGV  now, queue, verb, and
--       add most id entry            entry: JSON without its time
--       list after limit             REPLY cursor, id, entry, ...
--       count                        REPLY how many
--       redrive, discard cursor id ...   REPLY how many of them were still there; or, negative, the place of one that must not enter
local queue, verb = ARGV[2], ARGV[3]
local letters, order = letters_of(queue)
local function body_of(entry)
  return cjson.decode(string.sub(entry, string.find(entry, '\n', 1, true) + 1)).body
end
if verb == 'add' then
  bury(queue, ARGV[5], string.format('%.0f', now) .. '\n' .. ARGV[6], tonumber(ARGV[4]))
  return 1
elseif verb == 'count' then
  return call('ZCARD', order)
elseif verb == 'list' then
  local reply = {}
  local found = call('ZRANGEBYSCORE', order, '(' .. ARGV[4], '+inf', 'WITHSCORES', 'LIMIT', 0, tonumber(ARGV[5]))
  for i = 1, #found, 2 do
    local n = #reply
    reply[n + 1], reply[n + 2], reply[n + 3] = found[i + 1], found[i], call('HGET', letters, found[i])
  end
  return reply
end
if verb == 'redrive' then
  for i = 4, #ARGV, 2 do
    local entry = call('HGET', letters, ARGV[i + 1])
    if entry and not may_enter(body_of(entry)) then return -(i - 2) / 2 end
  end
end
local count = 0
for i = 4, #ARGV, 2 do
  local cursor, id = ARGV[i], ARGV[i + 1]
  local score = call('ZSCORE', order, id)
  if score and tonumber(score) == tonumber(cursor) then
    local entry = call('HGET', letters, id)
    call('ZREM', order, id)
    call('HDEL', letters, id)
    if verb == 'redrive' then
      add_message({ queue, 0, now, 1, false, false, false, id, 0, false, false }, body_of(entry))
    end
    count = count + 1
  end
end
publish_all()
return count

-- leave.lua: removes consumers that hold nothing: this one, and those that have not been heard of. One that still lives is made anew
-- by its next claim. With its list of messages a consumer would take them along, so one that holds any stays.
-- ARGV … the beginning of all names that we give, ms after which another one counts as gone, 1 = this one leaves as well
local mark, goneMs, leaves = ARGV[3], tonumber(ARGV[4]), ARGV[5] == '1'
for _, row in ipairs(redis.call('XINFO', 'CONSUMERS', stream, group)) do
  local consumer = {}
  for i = 1, #row, 2 do consumer[row[i]] = row[i + 1] end
  local isOver = consumer.name == me and leaves
  local isGone = consumer.name ~= me and string.sub(consumer.name, 1, #mark) == mark and consumer.idle > goneMs
  if consumer.pending == 0 and (isOver or isGone) then redis.call('XGROUP', 'DELCONSUMER', stream, group, consumer.name) end
end

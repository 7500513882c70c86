-- push.lua: adds bodies to a plain queue, except those whose dedupe key is in the queue.
--
-- ARGV  now, queue, and for each: delay, priority, dedupe key ('' or '=' and text), id, body
-- REPLY 0, or the place of a body that must not enter: then none has
local queue = ARGV[2]
for i = 3, #ARGV, 5 do
  if not may_enter(ARGV[i + 4]) then return (i + 2) / 5 end
end
for i = 3, #ARGV, 5 do
  local delay, priority, dedupe = tonumber(ARGV[i]), tonumber(ARGV[i + 1]), ARGV[i + 2]
  local key = dedupe ~= '' and string.sub(dedupe, 2) or false
  if not key or call('HSETNX', DEDUPE, dedupe_field(queue, key), 1) == 1 then
    add_message({ queue, priority, now + delay, 1, key, false, false, ARGV[i + 3], 0, false, false }, ARGV[i + 4])
  end
end
publish_all()
return 0

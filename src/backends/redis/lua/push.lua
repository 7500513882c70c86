-- push.lua: adds bodies to a plain queue, except those whose dedupe key is in the queue.
--
-- ARGV  now, queue, and for each: delay, priority, dedupe key ('' or '=' and text), body
local queue = ARGV[2]
local first_due
for i = 3, #ARGV, 4 do
  local delay, priority, dedupe, body = tonumber(ARGV[i]), tonumber(ARGV[i + 1]), ARGV[i + 2], ARGV[i + 3]
  local key = dedupe ~= '' and string.sub(dedupe, 2) or false
  if not key or call('HSETNX', DEDUPE, dedupe_field(queue, key), 1) == 1 then
    local no = call('INCR', MESSAGE_SEQ)
    local m = { queue, priority, now + delay, 1, key, false, false }
    save_message(no, m)
    call('HSET', MESSAGE_BODIES, no, body)
    call('HINCRBY', QUEUE_SIZES, queue, 1)
    file_message(no, m)
    notify_ready(queue, now + delay)
  end
end
publish_all()
return 1

-- pop.lua: frees lapsed leases of a plain queue, then leases visible messages.
--
-- ARGV  now, queue, max, visibility, token, step
-- REPLY no, body, delivery, id, starts, note or false, ...
local queue, max, visibility, token = ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4]), ARGV[5]
free_messages(queue, tonumber(ARGV[6]))
local reply = {}
local taken = max > 0 and take_messages(queue, max) or {}
for _, no in ipairs(taken) do
  local m = load_message(no)
  if m then
    m[6], m[7], m[10] = token, now + visibility, false
    save_message(no, m)
    call('ZADD', MESSAGE_LEASES .. queue, m[7], no)
    local n = #reply
    reply[n + 1], reply[n + 2], reply[n + 3] = no, call('HGET', MESSAGE_BODIES, no), m[4]
    reply[n + 4], reply[n + 5], reply[n + 6] = m[8], m[9], m[11]
  end
end
return reply

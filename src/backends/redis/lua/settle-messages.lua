-- settle-messages.lua: acks, fails, starts or extends leases of a plain queue. A stale or unknown lease changes nothing.
--
-- ARGV  now, verb (ack, fail, beat, start), ms (delay or visibility; '' for none), what a fail keeps with it ('' or '=' and text),
--       and no, token for each lease
-- REPLY 1 or 0 for each: whether the lease was held
local verb, ms, note = ARGV[2], tonumber(ARGV[3]), ARGV[4]
local reply = {}
even_when_full()
for i = 5, #ARGV, 2 do
  local no, token = ARGV[i], ARGV[i + 1]
  local m = load_message(no)
  if not m or m[6] ~= token then
    reply[#reply + 1] = 0
  else
    reply[#reply + 1] = 1
    if verb == 'beat' then
      m[7] = now + ms
      save_message(no, m)
      call('ZADD', MESSAGE_LEASES .. m[1], m[7], no)
    elseif verb == 'start' then
      if not m[10] then
        m[9], m[10] = m[9] + 1, true
        save_message(no, m)
      end
    else
      call('ZREM', MESSAGE_LEASES .. m[1], no)
      if verb == 'ack' then
        drop_message(no, m)
      else
        m[4], m[6], m[7] = m[4] + 1, false, false
        if ms and ms > 0 then m[3] = now + ms end
        if note ~= '' then m[11] = string.sub(note, 2) end
        save_message(no, m)
        file_message(tonumber(no), m)
        notify_ready(m[1], m[3])
      end
    end
  end
end
publish_all()
return reply

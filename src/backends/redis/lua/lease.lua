-- lease.lua: extends many leases, and stores the record of the worker that holds them.
--
-- ARGV  now, lease (ms), worker id, worker (JSON), and for each lease: id, token, running (1 or 0), progress ('' or '=' and text)
-- REPLY one letter for each lease: h held, l lost, c cancelled
local lease, worker, record = tonumber(ARGV[2]), ARGV[3], ARGV[4]
local WORKERS, WORKER = prefix .. ':workers', prefix .. ':worker'
local FORGOTTEN_AFTER, STEP = 3600000, 100

local ids = {}
for i = 5, #ARGV, 4 do ids[#ids + 1] = ARGV[i] end
fetch(ids)
local answers = {}
for i = 5, #ARGV, 4 do
  local id, token, running, progress = ARGV[i], ARGV[i + 1], ARGV[i + 2], ARGV[i + 3]
  local r = records[id]
  if not r or r[STATE] ~= 'r' or r[MORE].tk ~= token then
    answers[#answers + 1] = 'l'
  else
    change(id)
    local more = r[MORE]
    more.un = now + lease
    more.rn = running == '1' or nil
    if progress ~= '' then put(PROGRESS, id, string.sub(progress, 2)) end
    answers[#answers + 1] = more.ca and 'c' or 'h'
  end
end
even_when_full()
settle_groups()
settle_records()

call('ZADD', WORKERS, now, worker)
call('HSET', WORKER, worker, record)
for _, stale in ipairs(call('ZRANGEBYSCORE', WORKERS, '-inf', now - FORGOTTEN_AFTER, 'LIMIT', 0, STEP)) do
  call('ZREM', WORKERS, stale)
  call('HDEL', WORKER, stale)
end
return table.concat(answers)

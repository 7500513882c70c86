-- facts.lua: small reads.
--
-- ARGV  now, what: attempts id · input id · gate key · counts · workers · size queue · paused · schedules name... · log limit
-- REPLY attempts, input: text or false · gate: held id, need, condition, {waiting} or false · counts: field, number, ...
--       workers: JSON, seen at, ... · size: number · paused: keys ·
--       schedules: '<next at>\n<spec>' or false for each name, or without names name, record, ... · log: '<at>\n<JSON>', the newest first
local what, argument = ARGV[2], ARGV[3]
if what == 'attempts' or what == 'input' then
  -- An expired item counts as absent.
  fetch({ argument })
  local r, light = records[argument], lights[argument]
  if not r or (r[MORE] and r[MORE].ku and r[MORE].ku <= now) then return false end
  if light and what == 'attempts' then return light.line or false end
  if light and light.body ~= '' then return light.body end
  return call('HGET', what == 'input' and INPUTS or ATTEMPTS, argument)
elseif what == 'gate' then
  local packed = call('HGET', prefix .. ':gates', argument)
  if not packed then return false end
  local gate = cmsgpack.unpack(packed)
  return { gate[1], gate[2], gate[4], call('SMEMBERS', prefix .. ':gate-members:' .. argument) }
elseif what == 'counts' then
  return call('HGETALL', prefix .. ':counts')
elseif what == 'workers' then
  local reply = {}
  local FORGOTTEN_AFTER = 3600000
  local seen = call('ZRANGEBYSCORE', prefix .. ':workers', '(' .. string.format('%.0f', now - FORGOTTEN_AFTER), '+inf', 'WITHSCORES')
  for i = 1, #seen, 2 do
    reply[i], reply[i + 1] = call('HGET', prefix .. ':worker', seen[i]), seen[i + 1]
  end
  return reply
elseif what == 'size' then
  -- Plain messages, and the items of the ledger that have not ended.
  local size = tonumber(call('HGET', prefix .. ':queue-sizes', argument) or '0')
  local queue_type = #argument .. ':' .. argument
  local counts = call('HGETALL', prefix .. ':counts')
  for i = 1, #counts, 2 do
    local is_open = string.find('wsrba', string.sub(counts[i], 1, 1), 1, true)
    if is_open and string.sub(counts[i], 2, #queue_type + 1) == queue_type then size = size + tonumber(counts[i + 1]) end
  end
  return size
end
if what == 'paused' then
  return call('HKEYS', prefix .. ':pauses')
elseif what == 'schedules' then
  if #ARGV == 2 then return call('HGETALL', prefix .. ':schedules') end
  local names = {}
  for i = 3, #ARGV do names[i - 2] = ARGV[i] end
  return many(prefix .. ':schedules', names)
end
return call('LRANGE', prefix .. ':action-log', 0, tonumber(argument) - 1)

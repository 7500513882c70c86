-- throughput.lua: how many items ended lately, and since when the oldest waits, for each queue and type. Runs after promote.lua.
--
-- ARGV  now, window (ms; '' for all time)
-- REPLY queue and type ('<bytes of queue>:<queue><type>'), completed, failed, due time of the oldest or false, ...
local after = ARGV[2] ~= '' and now - tonumber(ARGV[2]) or nil
local rows, order = {}, {}
local function row_of(queue_type)
  local row = rows[queue_type]
  if not row then
    row = { completed = 0, failed = 0, oldest = false }
    rows[queue_type] = row
    order[#order + 1] = queue_type
  end
  return row
end

-- The list is in the order of ends, and so are its scores.
local function ended_lately(key)
  -- Infinity cannot be written as a score.
  local from = after and string.format('%.0f', (math.floor(after) + 1) * PLACES) or '-inf'
  return call('ZCOUNT', key, from, '+inf')
end

for _, field in ipairs(call('HKEYS', COUNTS)) do
  local word, size, rest = string.match(field, '^([cdw])(%d+):(.*)$')
  if word then
    local queue_type = string.sub(field, 2)
    local key = INDEX .. word .. ':' .. queue_type
    if word == 'w' then
      local queue, kind = string.sub(rest, 1, tonumber(size)), string.sub(rest, tonumber(size) + 1)
      -- Paused items do not wait to be claimed.
      if not paused('queue:' .. queue) and not paused('type:' .. kind) then
        for _, ready in ipairs(lists_of(word, queue_type)) do
          local due = tonumber(call('ZRANGE', ready, 0, 0, 'WITHSCORES')[2])
          local row = due and row_of(queue_type)
          if row and (not row.oldest or due < row.oldest) then row.oldest = due end
        end
      end
    else
      local count_of = ended_lately(key)
      if count_of > 0 then row_of(queue_type)[word == 'c' and 'completed' or 'failed'] = count_of end
    end
  end
end
local reply = {}
for i = 1, #order do
  local row = rows[order[i]]
  local n = #reply
  reply[n + 1], reply[n + 2], reply[n + 3], reply[n + 4] = order[i], row.completed, row.failed, row.oldest
end
return reply

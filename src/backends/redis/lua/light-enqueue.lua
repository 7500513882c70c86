-- light-enqueue.lua: enqueues light items (records.lua): all of those whose id, and the group and gates of that name, are unknown.
--
-- ARGV  now, n, ids..., texts... (from the queue on), how many long inputs, id and input of each; and for each queue, type and priority: queue, type, priority, the numbers of its items
--       (from 1, with a space between them; '' all of them), what to publish or ''
-- REPLY the numbers of those that were not enqueued: nothing was changed for them
local ITEMS, COUNTS, SEQ = prefix .. ':items', prefix .. ':counts', prefix .. ':seq'
local n = tonumber(ARGV[2])
local refused, is_refused, is_refused_id = {}, {}, {}
local function refuse_known(key)
  local known = call('HMGET', key, unpack(ARGV, 3, n + 2))
  for i = 1, n do
    if known[i] and not is_refused[i] then
      is_refused[i], is_refused_id[ARGV[i + 2]] = true, true
      refused[#refused + 1] = i
    end
  end
end
refuse_known(ITEMS)
for _, key in ipairs({ prefix .. ':groups', prefix .. ':member-gates' }) do
  if call('EXISTS', key) == 1 then refuse_known(key) end
end
if #refused == n then return refused end

-- The first write: a full server refuses it, and with it all of this.
local first = call('INCRBY', SEQ, n) - n
local due, score = string.format('%013d', now), string.format('%.0f', now)
local sets, members, at = {}, {}, 1
for i = 1, n do
  if not is_refused[i] then
    local arrival, id = string.format('%012d', first + i), ARGV[i + 2]
    members[i] = arrival .. id
    sets[at], sets[at + 1] = id, 'h' .. arrival .. due .. ARGV[i + n + 2]
    at = at + 2
  end
end
call('HSET', ITEMS, unpack(sets))
local first_lane = 2 * n + 4 + 2 * tonumber(ARGV[2 * n + 3])
for i = 2 * n + 4, first_lane - 1, 2 do
  if not is_refused_id[ARGV[i]] then call('HSET', prefix .. ':inputs', ARGV[i], ARGV[i + 1]) end
end
for i = first_lane, #ARGV, 5 do
  local queue, priority = ARGV[i], ARGV[i + 2]
  local queue_type = #queue .. ':' .. queue .. ARGV[i + 1]
  local adds, count = {}, 0
  local function file(number)
    if members[number] then
      adds[2 * count + 1], adds[2 * count + 2] = score, members[number]
      count = count + 1
    end
  end
  if ARGV[i + 3] == '' then
    for number = 1, n do file(number) end
  else
    for number in string.gmatch(ARGV[i + 3], '%d+') do file(tonumber(number)) end
  end
  if count > 0 then
    call('ZADD', prefix .. ':ready:' .. priority .. ':' .. queue_type, unpack(adds))
    call('ZADD', prefix .. ':priorities:' .. queue_type, -tonumber(priority), priority)
    call('HINCRBY', COUNTS, 'w' .. queue_type, count)
  end
  if ARGV[i + 4] ~= '' then call('PUBLISH', prefix .. ':ready-channel', ARGV[i + 4]) end
end
return refused

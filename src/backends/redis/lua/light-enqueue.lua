-- light-enqueue.lua: enqueues light items (records.lua): all of those whose id, and the group and gates of that name, are unknown.
--
-- ARGV  now, ids, texts (from the queue on; of both, each with '\29' behind it), how many long inputs, id and input of each; and for each queue, type and priority: queue, type, priority, the numbers of its items
--       (from 1, with a space between them; '' all of them), what to publish or ''
-- REPLY the numbers of those that were not enqueued: nothing was changed for them
local ITEMS, COUNTS, SEQ = prefix .. ':items', prefix .. ':counts', prefix .. ':seq'
local ids, n = {}, 0
for id in string.gmatch(ARGV[2], '([^\29]*)\29') do
  n = n + 1
  ids[n] = id
end
local refused, is_refused, is_refused_id = {}, {}, {}
local function refuse_known(key)
  local known = call('HMGET', key, unpack(ids, 1, n))
  for i = 1, n do
    if known[i] and not is_refused[i] then
      is_refused[i], is_refused_id[ids[i]] = true, true
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
local sets, members, at, i = {}, {}, 1, 0
for text in string.gmatch(ARGV[3], '([^\29]*)\29') do
  i = i + 1
  if not is_refused[i] then
    local arrival, id = string.format('%012d', first + i), ids[i]
    members[i] = arrival .. id
    sets[at], sets[at + 1] = id, 'h' .. arrival .. due .. text
    at = at + 2
  end
end
call('HSET', ITEMS, unpack(sets))
local first_lane = 5 + 2 * tonumber(ARGV[4])
for i = 5, first_lane - 1, 2 do
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

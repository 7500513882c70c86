-- light-complete.lua: ends light items (records.lua) whose lease is held.
--
-- ARGV  now, and for each claim: number, key, queue, type, keep ('' forever), ids, ends (from the ending on); of both, each
--       with '\29' behind it; inboxes that are notified ('' or one for each of them, likewise)
-- REPLY the numbers of those that were not ended, from 1: nothing was changed for them
local INDEX, ENDS, CLAIMS, COUNTS = prefix .. ':index:', prefix .. ':ends', prefix .. ':claims', prefix .. ':counts'
-- As in records.lua.
local PLACES = 2048
local refused, number = {}, 0
local base, ended_at = now * PLACES, string.format('%013d', now)

local nos = {}
for at = 2, #ARGV, 8 do nos[#nos + 1] = ARGV[at] end
local claims = call('HMGET', CLAIMS, unpack(nos))

-- What is held, by claim: everything is read before anything is written.
local groups, ends, kept, inboxes = {}, {}, {}, {}
for g = 1, #nos do
  local at = 8 * g - 6
  local no, key, queue, keep = ARGV[at], ARGV[at + 1], ARGV[at + 2], ARGV[at + 4]
  local queue_type, number_of_claim = #queue .. ':' .. queue .. ARGV[at + 3], tonumber(no)
  local active, named, n = INDEX .. 'a:' .. queue_type, {}, 0
  for id in string.gmatch(ARGV[at + 5], '([^\29]*)\29') do
    n = n + 1
    named[n] = id
  end
  local waiters = {}
  for inbox in string.gmatch(ARGV[at + 7], '([^\29]*)\29') do waiters[#waiters + 1] = inbox end
  local run_at, its_key = string.match(claims[g] or '', '^(%d%d%d%d%d%d%d%d%d%d%d%d%d)[^\30]*\30([^\30]*)\30')
  local held = its_key == key and call('ZMSCORE', active, unpack(named, 1, n)) or {}
  local head = run_at and ended_at .. run_at .. keep .. '\30' .. no .. '.' .. key .. '\30'
  -- Begins with the queue type, for `kept`.
  local ids, adds, count, i = { queue_type }, {}, 0, 0
  for text in string.gmatch(ARGV[at + 6], '([^\29]*)\29') do
    i = i + 1
    if held[i] and tonumber(held[i]) == number_of_claim then
      local id, to = named[i], #ends
      count = count + 1
      ids[count + 1] = id
      ends[to + 1], ends[to + 2] = id, head .. text
      adds[2 * count - 1], adds[2 * count] = base + (number + i) % PLACES, id
      local inbox = waiters[i] or ''
      if inbox ~= '' then
        inboxes[inbox] = inboxes[inbox] or {}
        table.insert(inboxes[inbox], id)
      end
    else
      refused[#refused + 1] = number + i
    end
  end
  number = number + n
  if count > 0 then
    groups[#groups + 1] = { no, queue, queue_type, active, ids, adds, count }
    if keep ~= '' then
      kept[keep] = kept[keep] or { now }
      kept[keep][#kept[keep] + 1] = ids
    end
  end
end
if #groups == 0 then return refused end

for g = 1, #groups do
  local no, queue, queue_type, active, ids, adds, count = unpack(groups[g])
  -- A removal comes first: a full server lets a script that begins with one finish.
  call('ZREM', active, unpack(ids, 2))
  call('ZADD', INDEX .. 'c:' .. queue_type, unpack(adds))
  if call('HINCRBY', COUNTS, 'a' .. queue_type, -count) == 0 then call('HDEL', COUNTS, 'a' .. queue_type) end
  call('HINCRBY', COUNTS, 'c' .. queue_type, count)
  if call('ZCOUNT', active, no, no) == 0 then
    call('HDEL', CLAIMS, no)
    call('ZREM', prefix .. ':claim-ends:' .. queue, no)
  end
end
call('HSET', ENDS, unpack(ends))
for keep, entry in pairs(kept) do
  if call('RPUSH', prefix .. ':kept:' .. keep, cmsgpack.pack(entry)) == 1 then
    call('ZADD', prefix .. ':retention', now + tonumber(keep), 'k' .. keep)
  end
end
-- As notify.lua writes it: each item is a group, too.
for inbox, ids in pairs(inboxes) do call('PUBLISH', prefix .. ':inbox:' .. inbox, cjson.encode({ ids, ids })) end
return refused

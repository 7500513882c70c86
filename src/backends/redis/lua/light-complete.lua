-- light-complete.lua: ends light items (records.lua) whose lease is held.
--
-- ARGV  now, and for each claim: number, key, queue, type, keep ('' forever), ids, ends (from the ending on); of both, each
--       with '\29' behind it
-- REPLY the numbers of those that were not ended, from 1: nothing was changed for them
local INDEX, ENDS, CLAIMS, COUNTS = prefix .. ':index:', prefix .. ':ends', prefix .. ':claims', prefix .. ':counts'
local RETENTION = prefix .. ':retention'
-- As in records.lua.
local PLACES = 2048
local refused, number, at = {}, 0, 2
local base = now * PLACES
while at < #ARGV do
  local no, key, queue, keep = ARGV[at], ARGV[at + 1], ARGV[at + 2], ARGV[at + 4]
  local queue_type, number_of_claim = #queue .. ':' .. queue .. ARGV[at + 3], tonumber(no)
  local named, n = {}, 0
  for id in string.gmatch(ARGV[at + 5], '([^\29]*)\29') do
    n = n + 1
    named[n] = id
  end
  local active, completed = INDEX .. 'a:' .. queue_type, INDEX .. 'c:' .. queue_type
  local run_at, its_key = string.match(call('HGET', CLAIMS, no) or '', '^(%d%d%d%d%d%d%d%d%d%d%d%d%d)[^\30]*\30([^\30]*)\30')
  local held = its_key == key and call('ZMSCORE', active, unpack(named, 1, n)) or {}
  local head = run_at and string.format('%013d', now) .. run_at .. keep .. '\30' .. no .. '.' .. key .. '\30'
  local ids, ends, adds, count = {}, {}, {}, 0
  local i = 0
  for text in string.gmatch(ARGV[at + 6], '([^\29]*)\29') do
    i = i + 1
    if held[i] and tonumber(held[i]) == number_of_claim then
      local id = named[i]
      count = count + 1
      ids[count] = id
      ends[2 * count - 1], ends[2 * count] = id, head .. text
      adds[2 * count - 1], adds[2 * count] = base + (number + i) % PLACES, id
    else
      refused[#refused + 1] = number + i
    end
  end
  if count > 0 then
    -- A removal comes first: a full server lets a script that begins with one finish.
    call('ZREM', active, unpack(ids))
    call('HSET', ENDS, unpack(ends))
    call('ZADD', completed, unpack(adds))
    if call('HINCRBY', COUNTS, 'a' .. queue_type, -count) == 0 then call('HDEL', COUNTS, 'a' .. queue_type) end
    call('HINCRBY', COUNTS, 'c' .. queue_type, count)
    if keep ~= '' then
      ids[count + 1], ids[count + 2] = queue_type, now
      if call('RPUSH', prefix .. ':kept:' .. keep, cmsgpack.pack(ids)) == 1 then
        call('ZADD', RETENTION, now + tonumber(keep), 'k' .. keep)
      end
    end
    if call('ZCOUNT', active, no, no) == 0 then
      call('HDEL', CLAIMS, no)
      call('ZREM', prefix .. ':claim-ends:' .. queue, no)
    end
  end
  number = number + n
  at = at + 7
end
return refused

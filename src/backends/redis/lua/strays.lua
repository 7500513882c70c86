-- strays.lua: unfinished items that nothing will ever put to work, among the next so many of all items.
--
-- ARGV  now, cursor of the hash, count (how many items are looked at, about)
-- REPLY next cursor ('0': that was the last of them), views...
local found = call('HSCAN', ITEMS, ARGV[2], 'COUNT', ARGV[3])
local seen, strays = {}, {}
for i = 1, #found[2], 2 do
  local id = found[2][i]
  if not seen[id] then
    seen[id] = true
    records[id] = cmsgpack.unpack(found[2][i + 1])
    local r = item(id)
    -- One whose hold has just ended is given its place below.
    if r and before[id] == nil and (r[STATE] == 'r' or (r[STATE] == 'p' and not (r[MORE] and r[MORE].hb))) then
      local key, _, member = place_of(id, r)
      local is_there = key and call('ZSCORE', key, member)
      -- A ready set that is not among the priorities of its type is never asked.
      if is_there and r[WORD] == 'w' then
        is_there = call('ZSCORE', PRIORITIES .. home_of(r[QUEUE], r[TYPE]), tostring(r[PRIORITY]))
      end
      if not is_there then strays[#strays + 1] = id end
    end
  end
end
local views = views_of(strays, false)
local reply = { found[1] }
for i = 1, #strays do reply[i + 1] = views[strays[i]] or false end
if #touched > 0 then even_when_full() end
settle_groups()
settle_records()
return reply

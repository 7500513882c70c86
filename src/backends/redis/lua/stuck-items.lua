-- stuck-items.lua: unfinished items that no claim will ever find, among the next `count` of all items.
--
-- ARGV  now, cursor of the hash, count (about how many items are read)
-- REPLY next cursor ('0': that was the last of them), views...
local found = call('HSCAN', ITEMS, ARGV[2], 'COUNT', ARGV[3])
local seen, stuck = {}, {}
for i = 1, #found[2], 2 do
  local id = found[2][i]
  if not seen[id] then
    seen[id] = true
    load_texts({ id }, { found[2][i + 1] })
    local r = item(id)
    -- An item whose hold has just ended is filed below.
    if r and before[id] == nil and (r[STATE] == 'r' or (r[STATE] == 'p' and not (r[MORE] and r[MORE].hb))) then
      local key, _, member = place_of(id, r)
      -- The lease of a light item is that of its claim.
      local is_there = key and (lights[id] and r[STATE] == 'r' or call('ZSCORE', key, member))
      -- Claims never read a ready set that is missing from the priorities of its type.
      if is_there and r[WORD] == 'w' then
        is_there = call('ZSCORE', PRIORITIES .. queue_type_of(r[QUEUE], r[TYPE]), tostring(r[PRIORITY]))
      end
      if not is_there then stuck[#stuck + 1] = id end
    end
  end
end
local views = views_of(stuck, false)
local reply = { found[1] }
for i = 1, #stuck do reply[i + 1] = views[stuck[i]] or false end
if #touched > 0 then even_when_full() end
settle_groups()
settle_records()
return reply

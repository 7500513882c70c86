-- groups-read.lua: groups by their ids.
--
-- ARGV  now, with values (1) or without (0), ids...
-- REPLY for each id: false, or {open, value or false, final (1 or 0), version}
local ids = {}
for i = 3, #ARGV do ids[i - 2] = ARGV[i] end
fetch_groups(ids)
local values = ARGV[2] == '1' and many(VALUES, ids) or {}
local reply = {}
for i = 1, #ids do
  local page = pages[ids[i]]
  reply[i] = page and { page.open, page.version > 0 and values[i] or false, page.final and 1 or 0, page.version } or false
end
write_gathered()
return reply

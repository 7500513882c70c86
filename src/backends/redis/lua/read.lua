-- read.lua: items by their ids.
--
-- ARGV  now, with payloads (1) or without (0), ids...
-- REPLY for each id: false, or its view (view.lua)
local ids = {}
for i = 3, #ARGV do ids[i - 2] = ARGV[i] end
fetch(ids)
local views = views_of(ids, ARGV[2] == '1')
local reply = {}
for i = 1, #ids do reply[i] = views[ids[i]] or false end
if #touched > 0 then even_when_full() end
settle_groups()
settle_records()
return reply

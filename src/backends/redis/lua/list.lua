-- list.lua: a page of items, the newest first: waiting items by due time, ended items by the time of their end, others by the
-- time they entered their list.
--
-- ARGV  as query.lua
-- REPLY next cursor or false, views...
local chosen, next_cursor = find_page()
local views = views_of(chosen, false)
local reply = { next_cursor }
for i = 1, #chosen do reply[i + 1] = views[chosen[i]] or false end
if #touched > 0 then even_when_full() end
settle_groups()
settle_records()
return reply

-- list.lua: a page of items, the newest first: of those that wait the last to become due, of those that ended the last to end,
-- of the others the last to come into their list.
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

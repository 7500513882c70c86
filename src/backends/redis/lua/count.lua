-- count.lua: counts the items of one page of a query.
--
-- ARGV  as query.lua
-- REPLY next cursor or false, number
local chosen, next_cursor = find_page()
if #touched > 0 then even_when_full() end
settle_groups()
settle_records()
return { next_cursor, #chosen }

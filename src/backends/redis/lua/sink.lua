-- sink.lua: keeps a copy of a dead-lettered body, and its error. The oldest are removed when there are too many.
--
-- ARGV  now, queue, most, entry (JSON)
local sink = prefix .. ':dead-letters:' .. ARGV[2]
call('LPUSH', sink, ARGV[4])
call('LTRIM', sink, 0, tonumber(ARGV[3]) - 1)
return 1

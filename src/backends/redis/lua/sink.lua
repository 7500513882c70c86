-- sink.lua: keep a copy of a body that was given up, and its error. The oldest leave when there are too many.
--
-- ARGV  now, queue, most, entry (JSON)
local sink = prefix .. ':dead-letters:' .. ARGV[2]
call('LPUSH', sink, ARGV[4])
call('LTRIM', sink, 0, tonumber(ARGV[3]) - 1)
return 1

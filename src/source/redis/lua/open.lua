-- open.lua: makes the group, and with it the stream, where there is none.
-- ARGV … the id behind which it begins ('$' = with what comes next)
-- REPLY the last id of the stream
local made = redis.pcall('XGROUP', 'CREATE', stream, group, ARGV[3], 'MKSTREAM')
if type(made) == 'table' and made.err and not string.find(made.err, 'BUSYGROUP', 1, true) then return made end
local info = redis.call('XINFO', 'STREAM', stream)
for i = 1, #info, 2 do
  if info[i] == 'last-generated-id' then return info[i + 1] end
end

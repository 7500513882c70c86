-- report.lua: how far the group has come.
-- ARGV … at most so many messages are counted where the server does not know, 1 = a group that is not there yet begins with everything
-- REPLY waiting (never delivered), out (delivered and not settled), put back (of those out, waiting to be delivered again), consumers
local most = tonumber(ARGV[3])
if redis.call('EXISTS', stream) == 0 then return { 0, 0, 0, 0 } end
for _, row in ipairs(redis.call('XINFO', 'GROUPS', stream)) do
  local found = {}
  for i = 1, #row, 2 do found[row[i]] = row[i + 1] end
  if found.name == group then
    -- Where messages were deleted, or the group was moved, the server cannot tell.
    local waiting = found.lag or #redis.call('XRANGE', stream, '(' .. found['last-delivered-id'], '+', 'COUNT', most)
    return { waiting, found.pending, redis.call('ZCARD', due), found.consumers }
  end
end
return { ARGV[4] == '1' and redis.call('XLEN', stream) or 0, 0, 0, 0 }

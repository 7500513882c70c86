-- ids.lua: ids that match a pattern, among the next `count` of all items.
--
-- ARGV  now, cursor of the hash, pattern, count (about how many items are looked at)
-- REPLY next cursor ('0': those were the last), ids...
local found = call('HSCAN', prefix .. ':items', ARGV[2], 'MATCH', ARGV[3], 'COUNT', ARGV[4])
local reply = { found[1] }
for i = 1, #found[2], 2 do
  local id = found[2][i]
  load_texts({ id }, { found[2][i + 1] })
  -- An expired item counts as absent.
  local more = records[id][MORE]
  if not (more and more.ku and more.ku <= now) then reply[#reply + 1] = id end
end
return reply

-- publish.lua: adds an entry, once for each name.
-- ARGV … name, ms for which the name is remembered, most entries of the stream ('' = no limit), fields
-- REPLY the id of the entry, also of one that was added before
local published = (string.find(stream, '{[^}]+}') and stream or '{' .. stream .. '}') .. ':millrace:published:' .. ARGV[3]
local known = redis.call('GET', published)
if known then return known end
local entry = { stream }
if ARGV[5] ~= '' then
  for _, word in ipairs({ 'MAXLEN', '~', ARGV[5] }) do entry[#entry + 1] = word end
end
entry[#entry + 1] = '*'
for i = 6, #ARGV do entry[#entry + 1] = ARGV[i] end
local id = redis.call('XADD', unpack(entry))
redis.call('SET', published, id, 'PX', ARGV[4])
return id

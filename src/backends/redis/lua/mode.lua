-- mode.lua: a namespace is used either natively or by plain ports, because a group must not be stored twice.
--
-- ARGV  now, mode (native or plain), version (of the storage, as this code writes it)
-- REPLY the mode of the namespace (the first one wins), and the lowest version of the code that can read it
local MODE, STORAGE = prefix .. ':mode', prefix .. ':storage'
local known = call('GET', MODE)
if not known then
  call('SET', MODE, ARGV[2])
  call('HSET', STORAGE, 'version', ARGV[3], 'minReader', ARGV[3])
  return { ARGV[2], ARGV[3] }
end
return { known, call('HGET', STORAGE, 'minReader') }

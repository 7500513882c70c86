-- mode.lua: a namespace is used either natively or by plain ports, because a group must not be stored twice.
--
-- ARGV  now, mode (native or plain), version (of the storage, as this code writes it)
-- REPLY the mode of the namespace (the first one wins), and the lowest version of the code that can read it
local MODE, STORAGE = prefix .. ':mode', prefix .. ':storage'
local known = call('GET', MODE)
if not known then
  -- The namespace is new: upgrade.lua has nothing to do.
  call('SET', MODE, ARGV[2])
  call('HSET', STORAGE, 'version', ARGV[3], 'minReader', ARGV[3])
  return { ARGV[2], ARGV[3] }
end
local reader = call('HGET', STORAGE, 'minReader')
if not reader then
  even_when_full()
  reader = ARGV[3]
  call('HSET', STORAGE, 'minReader', reader)
end
return { known, reader }

-- mode.lua: one namespace is native or plain as a whole, because a group must not live in two books.
--
-- ARGV  now, mode (native or plain), version (of the storage, as this code writes it)
-- REPLY the mode of the namespace: that which came first; the lowest version of the code that can read it
local MODE, STORAGE = prefix .. ':mode', prefix .. ':storage'
local known = call('GET', MODE)
if not known then
  -- Nothing is here that upgrade.lua would have to see.
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

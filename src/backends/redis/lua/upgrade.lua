-- upgrade.lua: files items again that were written before lists were in the order of time and failures were grouped, in steps.
--
-- ARGV  now, step
-- REPLY 1 (there is more) or 0 (done)
local STORAGE = prefix .. ':storage'
-- An empty namespace stays empty.
if call('HEXISTS', STORAGE, 'version') == 1 or call('EXISTS', COUNTS) == 0 then return 0 end
local step = tonumber(ARGV[2])
-- Lists were in the order of this counter, which is smaller than any real instant. (An instant of a test clock may be smaller still:
-- then nothing is old.)
local old = tonumber(call('GET', SEQ) or '0')
local left = now * PLACES > old and step or 0
local is_done = true
even_when_full()
for _, field in ipairs(call('HKEYS', COUNTS)) do
  local word = string.match(field, '^[wrcdk]')
  if word and left > 0 then
    local key = INDEX .. word .. ':' .. string.sub(field, 2)
    local ids = call('ZRANGEBYSCORE', key, '-inf', old, 'LIMIT', 0, left)
    left = left - #ids
    fetch(ids)
    for i = 1, #ids do
      local r = refile(ids[i])
      if not r then
        remove(key, ids[i])
      elseif r[MORE] and r[MORE].fp and not r[MORE].fa then
        local line = string.match(call('HGET', ATTEMPTS, ids[i]) or '', '[^\n]*$')
        local is_json, run = pcall(cjson.decode, line)
        if is_json and type(run) == 'table' then
          r[MORE].fa = tonumber(run[3])
          r[MORE].fc = type(run[5]) == 'table' and type(run[5].class) == 'string' and run[5].class or nil
        end
      end
    end
    if left <= 0 then is_done = false end
  end
end
settle_records()
if is_done then call('HSET', STORAGE, 'version', 2) end
return is_done and 0 or 1

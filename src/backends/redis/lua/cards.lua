-- cards.lua: counts items by the sizes of their lists. Runs after promote.lua.
--
-- ARGV  now, words (letters of the lists), trait ('' or t:tag, c:class, f:fingerprint), queue and type ('' or with '=' before it;
--       only without a trait), before and after ('' or epoch ms: count only items that
--       ended before, or not before, that time; the words are then those of ended items)
-- REPLY number
local words, trait, before_at, after_at = ARGV[2], ARGV[3], tonumber(ARGV[6]), tonumber(ARGV[7])
local function score_of(at) return string.format('%.0f', math.ceil(at) * PLACES) end
local function size_of(key)
  if not before_at and not after_at then return call('ZCARD', key) end
  return call('ZCOUNT', key, after_at and score_of(after_at) or '-inf', before_at and '(' .. score_of(before_at) or '+inf')
end

local sum = 0
if trait ~= '' then
  for letter in string.gmatch(words, '.') do sum = sum + size_of(INDEX .. letter .. ':' .. trait) end
  return sum
end
for _, field in ipairs(call('HKEYS', COUNTS)) do
  local word, size, rest = string.match(field, '^(.)(%d+):(.*)$')
  local queue, kind = string.sub(rest, 1, tonumber(size)), string.sub(rest, tonumber(size) + 1)
  local is_meant = (ARGV[4] == '' or ARGV[4] == '=' .. queue) and (ARGV[5] == '' or ARGV[5] == '=' .. kind)
  if is_meant and string.find(words, word, 1, true) then
    for _, key in ipairs(lists_of(word, string.sub(field, 2))) do sum = sum + size_of(key) end
  end
end
return sum

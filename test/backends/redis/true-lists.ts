import type { Redis } from 'ioredis'

/**
 * Compares every sorted set and count that follows from the records with the records themselves, independently of the scripts: which sets each item must
 * be in is worked out anew from the hash, and the sets have to hold exactly that. Replies what is wrong.
 */
const COMPARE = `
local prefix, wrong, expected = KEYS[1], {}, {}
local function expect(key, score, member)
  expected[key] = expected[key] or {}
  expected[key][member] = score
end
local sizes, counts = {}, {}
local claims = {}
local function count(field) counts[field] = (counts[field] or 0) + 1 end
-- An item that is still a text: what its lists have to say is in it, in its end, or in the claim that it was handed out with.
local function light(id, text)
  local arrival, due, queue, kind, priority = string.match(text, '^h(%d%d%d%d%d%d%d%d%d%d%d%d)(%d%d%d%d%d%d%d%d%d%d%d%d%d)([^\\30]*)\\30([^\\30]*)\\30([^\\30]*)\\30')
  local place = #queue .. ':' .. queue .. kind
  local ended = redis.call('HGET', prefix .. ':ends', id)
  local no = redis.call('ZSCORE', prefix .. ':index:a:' .. place, id)
  count((ended and 'c' or no and 'a' or 'w') .. place)
  if ended then
    if no then wrong[#wrong + 1] = id .. ' has ended and is active' end
    local score = tonumber(redis.call('ZSCORE', prefix .. ':index:c:' .. place, id) or 'nan')
    if math.floor(score / 2048) ~= tonumber(string.sub(ended, 1, 13)) then wrong[#wrong + 1] = id .. ' ended at another time' end
    expect(prefix .. ':index:c:' .. place, true, id)
  elseif no then
    if not redis.call('HGET', prefix .. ':claims', no) then wrong[#wrong + 1] = id .. ' is of no claim' end
    if not redis.call('ZSCORE', prefix .. ':claim-ends:' .. queue, no) then wrong[#wrong + 1] = id .. ' never lapses' end
    claims[no] = true
    expect(prefix .. ':index:a:' .. place, tonumber(no), id)
  else
    expect(prefix .. ':ready:' .. priority .. ':' .. place, tonumber(due), arrival .. id)
  end
  -- Its last field is its input. A long one is elsewhere.
  if (redis.call('HEXISTS', prefix .. ':inputs', id) == 1) ~= (string.byte(text, -1) == 30) then wrong[#wrong + 1] = id .. ' has two inputs, or none' end
  for _, hash in ipairs({ 'results', 'attempts', 'groups' }) do
    if redis.call('HEXISTS', prefix .. ':' .. hash, id) == 1 then wrong[#wrong + 1] = id .. ' is light and has ' .. hash end
  end
end
local function whole(id, r)
  local state, queue, kind, due, arrival, word, more = r[1], r[2], r[3], r[6], r[7], r[8], r[9] or {}
  -- true: any score will do, it is the moment in which the item came there.
  local instant = word == 'w' and due or more.ea
  if state == 'p' or state == 'r' then instant = word == 'w' and due end
  local score = instant and instant * 2048 + arrival % 2048 or true
  local lists = { #queue .. ':' .. queue .. kind }
  count(word .. lists[1])
  for _, tag in ipairs(more.tg or {}) do lists[#lists + 1] = 't:' .. tag end
  if more.cl then lists[#lists + 1] = 'c:' .. more.cl end
  if more.fp then lists[#lists + 1] = 'f:' .. more.fp end
  for i, list in ipairs(lists) do
    if word ~= 'w' or i > 1 then expect(prefix .. ':index:' .. word .. ':' .. list, score, id) end
  end
  if more.fp and (word == 'd' or word == 'r') then
    local class = word == 'd' and more.cl or word == 'r' and more.fc or ''
    local group = #class .. ':' .. class .. #kind .. ':' .. kind .. more.fp
    expect(prefix .. ':failed:' .. word .. ':' .. group, word == 'd' and more.ea or more.fa, id)
    sizes[group] = (sizes[group] or 0) + 1
  end
  if word == 'w' then expect(prefix .. ':ready:' .. r[5] .. ':' .. lists[1], due, string.format('%012d', arrival) .. id) end
  if word == 'w' and more.dd then expect(prefix .. ':expiring:' .. queue, more.dd, string.format('%012d', arrival) .. id) end
  if (word == 's' or word == 'r') and due then expect(prefix .. ':delayed:' .. queue, due, id) end
  if state == 'r' then expect(prefix .. ':leases:' .. queue, more.un, id) end
  if redis.call('HEXISTS', prefix .. ':ends', id) == 1 then wrong[#wrong + 1] = id .. ' has the end of a light item' end
end
local flat = redis.call('HGETALL', prefix .. ':items')
for i = 1, #flat, 2 do
  if string.sub(flat[i + 1], 1, 1) == 'h' then light(flat[i], flat[i + 1]) else whole(flat[i], cmsgpack.unpack(flat[i + 1])) end
end
for _, no in ipairs(redis.call('HKEYS', prefix .. ':claims')) do
  if not claims[no] then wrong[#wrong + 1] = 'claim ' .. no .. ' has no items' end
end
local stored = redis.call('HGETALL', prefix .. ':counts')
for i = 1, #stored, 2 do
  local is = counts[stored[i]] or 0
  if is ~= tonumber(stored[i + 1]) then wrong[#wrong + 1] = stored[i] .. ' counts ' .. stored[i + 1] .. ' instead of ' .. is end
  counts[stored[i]] = nil
end
for field in pairs(counts) do wrong[#wrong + 1] = field .. ' is not counted' end
for group, size in pairs(sizes) do expect(prefix .. ':failures', size, group) end
for key, members in pairs(expected) do
  for member, score in pairs(members) do
    local found = tonumber(redis.call('ZSCORE', key, member) or 'nan')
    if found ~= found or (score ~= true and found ~= score) then
      wrong[#wrong + 1] = key .. ': ' .. member .. ' is at ' .. tostring(found) .. ' instead of ' .. tostring(score)
    end
  end
end
-- And nothing else stands there.
for _, key in ipairs(redis.call('KEYS', '*')) do
  if string.find(key, prefix .. ':index:', 1, true) == 1 or string.find(key, prefix .. ':failed:', 1, true) == 1 or
    key == prefix .. ':failures' or string.find(key, prefix .. ':ready:', 1, true) == 1 or
    string.find(key, prefix .. ':expiring:', 1, true) == 1 then
    for _, member in ipairs(redis.call('ZRANGE', key, 0, -1)) do
      if not (expected[key] and expected[key][member]) then wrong[#wrong + 1] = key .. ': ' .. member .. ' is too much' end
    end
  end
end
return wrong`

/** What is wrong with the lists of a namespace: nothing, if every one of them is what the records say. */
export async function wrongIn(admin: Redis, prefix: string): Promise<readonly string[]> {
  return (await admin.eval(COMPARE, 1, `{${prefix}}`)) as string[]
}

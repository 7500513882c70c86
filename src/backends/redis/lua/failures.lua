-- failures.lua: groups dead and retrying items that failed alike: the largest groups first, then the latest. Runs after promote.lua.
--
-- ARGV  now, limit, ties (how many groups of the size of the last one are compared with it at most)
-- REPLY for each: fingerprint, class, type, dead, retrying, first at, last at, id of the last, 1 if that is dead, else 0,
--       its error (dead) or the line of its last run (retrying), or false
local limit, ties = tonumber(ARGV[2]), tonumber(ARGV[3])
-- As in view.lua. The line of a run is JSON, and can only be cut once it is read.
local LISTED_ERROR_BYTES = 2048

local function ends_of(key)
  local first, last = call('ZRANGE', key, 0, 0, 'WITHSCORES'), call('ZREVRANGE', key, 0, 0, 'WITHSCORES')
  return first[2], last[2], last[1]
end

local function group_from(name)
  local dead, retrying = FAILED .. 'd:' .. name, FAILED .. 'r:' .. name
  local g = { name = name, dead = call('ZCARD', dead), retrying = call('ZCARD', retrying) }
  if g.dead > 0 then
    g.first, g.last, g.id = ends_of(dead)
    g.is_dead = true
  end
  if g.retrying > 0 then
    local first, last, id = ends_of(retrying)
    if not g.first or tonumber(first) < tonumber(g.first) then g.first = first end
    if not g.last or tonumber(last) > tonumber(g.last) then g.last, g.id, g.is_dead = last, id, false end
  end
  return g.id and g
end

-- The largest groups, and those as large as the smallest of them: time decides which of these belong here.
local names, is_named = call('ZREVRANGE', FAILURES, 0, limit - 1), {}
for i = 1, #names do is_named[names[i]] = true end
if #names == limit then
  local size = call('ZSCORE', FAILURES, names[limit])
  for _, name in ipairs(call('ZREVRANGEBYSCORE', FAILURES, size, size, 'LIMIT', 0, ties)) do
    if not is_named[name] then names[#names + 1] = name end
  end
end
local groups = {}
for i = 1, #names do groups[#groups + 1] = group_from(names[i]) or nil end
for _, g in ipairs(groups) do
  local size, rest = string.match(g.name, '^(%d+):(.*)$')
  g.class, rest = string.sub(rest, 1, tonumber(size)), string.sub(rest, tonumber(size) + 1)
  size, rest = string.match(rest, '^(%d+):(.*)$')
  g.type, g.fingerprint = string.sub(rest, 1, tonumber(size)), string.sub(rest, tonumber(size) + 1)
end
table.sort(groups, function(a, b)
  local of_a, of_b = a.dead + a.retrying, b.dead + b.retrying
  if of_a ~= of_b then return of_a > of_b end
  if a.last ~= b.last then return tonumber(a.last) > tonumber(b.last) end
  return a.fingerprint < b.fingerprint
end)

local reply = {}
for i = 1, math.min(limit, #groups) do
  local g = groups[i]
  local text
  if g.is_dead then
    text = call('HGET', ERRORS, g.id)
    text = text and string.sub(text, 1, LISTED_ERROR_BYTES)
  else
    text = call('HGET', ATTEMPTS, g.id)
    text = text and string.match(text, '[^\n]*$')
  end
  reply[i] = { g.fingerprint, g.class, g.type, g.dead, g.retrying, g.first, g.last, g.id, g.is_dead and 1 or 0, text }
end
return reply

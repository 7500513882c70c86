-- store.lua: keys and values with expiry.
--
-- ARGV  now, keeps (1: the server removes what has expired; 0: time is a test's, and only comparisons decide), verb, and
--       get key...                     REPLY value or false, for each
--       set ttl key value ...          ttl '' forever
--       delete key
--       increment ttl key by           REPLY the new value as text, or false if there is no number
--       incrementOnce ttl key by marker  REPLY value, 1 or 0 (or false)
--       compareAndSet { ttl key next expected ('' absent, or '=' and text) }...   REPLY 1 or 0, for each
-- A value is stored with its end in front: '<epoch ms or nothing>\n<value>'.
local keeps, verb = ARGV[2] == '1', ARGV[3]
local VALUE = prefix .. ':store:'

local function read(key)
  local stored = call('GET', VALUE .. key)
  if not stored then return false, nil end
  local cut = string.find(stored, '\n', 1, true)
  local ends = tonumber(string.sub(stored, 1, cut - 1))
  if ends and ends <= now then return false, nil end
  return string.sub(stored, cut + 1), ends
end

local function write(key, value, ends, ...)
  local stored = (ends and string.format('%.0f', ends) or '') .. '\n' .. value
  if ends and keeps then return call('SET', VALUE .. key, stored, 'PX', math.max(1, math.floor(ends - now)), ...) end
  return call('SET', VALUE .. key, stored)
end

local function ending(ttl)
  return ttl ~= '' and now + tonumber(ttl) or nil
end

-- The shortest text that reads back as this number.
local function text_of(number)
  for digits = 15, 17 do
    local text = string.format('%.' .. digits .. 'g', number)
    if tonumber(text) == number and not string.find(text, 'e', 1, true) then return text end
  end
  return string.format('%.17g', number)
end

local function sum(key, by, ttl)
  local value, ends = read(key)
  local known = value and (string.find(value, '^%s*[+-]?[%d.]') and tonumber(value) or nil)
  if value and not known then return false end
  local text = text_of((known or 0) + tonumber(by))
  -- The expiry is refreshed only when it is given.
  write(key, text, ending(ttl) or ends)
  return text
end

local function compare_and_set(key, expected, value, ends)
  -- The usual case is one command.
  if not expected and ends and keeps and write(key, value, ends, 'NX') then return true end
  if read(key) ~= expected then return false end
  write(key, value, ends)
  return true
end

if verb == 'get' then
  local reply = {}
  for i = 4, #ARGV do reply[i - 3] = (read(ARGV[i])) end
  return reply
elseif verb == 'set' then
  for i = 4, #ARGV, 3 do write(ARGV[i + 1], ARGV[i + 2], ending(ARGV[i])) end
  return 1
elseif verb == 'delete' then
  return call('DEL', VALUE .. ARGV[4])
elseif verb == 'compareAndSet' then
  local reply = {}
  for i = 4, #ARGV, 4 do
    local expected = ARGV[i + 3] ~= '' and string.sub(ARGV[i + 3], 2)
    reply[#reply + 1] = compare_and_set(ARGV[i + 1], expected, ARGV[i + 2], ending(ARGV[i])) and 1 or 0
  end
  return reply
end
local ttl, key = ARGV[4], ARGV[5]
if verb == 'increment' then
  return sum(key, ARGV[6], ttl)
else
  local marker = ARGV[7]
  if read(marker) then return { read(key) or '0', 0 } end
  local value = sum(key, ARGV[6], ttl)
  if not value then return false end
  write(marker, '1', ending(ttl))
  return { value, 1 }
end

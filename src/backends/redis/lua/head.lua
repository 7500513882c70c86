-- head.lua: the beginning of every script.
--
-- KEYS  prefix   begins every key; its hash tag keeps all of them in one slot
-- ARGV  now      epoch ms, or '' for the server's time. The only source of time.
local call = redis.call
local prefix = KEYS[1]
local now = tonumber(ARGV[1])
if not now then
  local time = call('TIME')
  now = time[1] * 1000 + math.floor(time[2] / 1000)
end

-- How many values one call can be given: Lua's stack is bounded.
local CHUNK = 2000

-- A full server refuses the first write of a script if that could take memory, but no write that follows another one. Scripts that
-- keep or end accepted work therefore begin by removing nothing: refused, the work would run twice and never free memory.
local function even_when_full()
  call('ZREM', prefix .. ':leases:', '')
end

-- ── writes to hashes and sorted sets, gathered: a script spends most of its time on calls ──

local fields, field_order = {}, {}
local function put(key, field, value)
  local changes = fields[key]
  if not changes then
    changes = {}
    fields[key] = changes
    field_order[#field_order + 1] = key
  end
  -- false: the field is removed.
  changes[field] = value
end

local removed, removed_order, added, added_order = {}, {}, {}, {}
local function remove(key, member)
  local list = removed[key]
  if not list then
    list = {}
    removed[key] = list
    removed_order[#removed_order + 1] = key
  end
  list[#list + 1] = member
end

local function add(key, score, member)
  local list = added[key]
  if not list then
    list = {}
    added[key] = list
    added_order[#added_order + 1] = key
  end
  local n = #list
  list[n + 1], list[n + 2] = score, member
end

local function in_chunks(command, key, list)
  local n = #list
  if n <= CHUNK then
    if n > 0 then call(command, key, unpack(list, 1, n)) end
    return
  end
  for first = 1, n, CHUNK do call(command, key, unpack(list, first, math.min(first + CHUNK - 1, n))) end
end

-- Removals come first: a full server allows them, and then lets the script finish. A batch that only adds is refused by its first
-- write, as a whole.
local function write_gathered()
  for i = 1, #removed_order do in_chunks('ZREM', removed_order[i], removed[removed_order[i]]) end
  for i = 1, #field_order do
    local key = field_order[i]
    local sets, dels = {}, {}
    for field, value in pairs(fields[key]) do
      if value == false then
        dels[#dels + 1] = field
      else
        local n = #sets
        sets[n + 1], sets[n + 2] = field, value
      end
    end
    in_chunks('HDEL', key, dels)
    in_chunks('HSET', key, sets)
  end
  for i = 1, #added_order do in_chunks('ZADD', added_order[i], added[added_order[i]]) end
  fields, field_order = {}, {}
  removed, removed_order, added, added_order = {}, {}, {}, {}
end

-- Many fields of one hash: value or false, in the order of the list.
local function many(key, list)
  local n = #list
  if n == 0 then return {} end
  if n <= CHUNK then return call('HMGET', key, unpack(list, 1, n)) end
  local all = {}
  for first = 1, n, CHUNK do
    local found = call('HMGET', key, unpack(list, first, math.min(first + CHUNK - 1, n)))
    for i = 1, #found do all[first + i - 1] = found[i] end
  end
  return all
end

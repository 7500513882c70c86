-- messages.lua: the plain queue. Bodies that nobody has looked into, apart from the items of the ledger.
--
-- A message is a packed array in the hash `messages` (queue, priority, due, deliveries, dedupe key or false, token or false,
-- until or false) and its text in the hash `texts`, both by arrival number.
local MESSAGES, TEXTS, DEDUPE, SIZES = prefix .. ':messages', prefix .. ':texts', prefix .. ':dedupe', prefix .. ':sizes'
local MREADY, MPRIORITIES = prefix .. ':m-ready:', prefix .. ':m-priorities:'
local MLATER, MLEASES, MSEQ = prefix .. ':m-later:', prefix .. ':m-leases:', prefix .. ':m-seq'

local function dedupe_field(queue, key)
  return #queue .. ':' .. queue .. key
end

local function load_message(no)
  local packed = call('HGET', MESSAGES, no)
  return packed and cmsgpack.unpack(packed)
end

local function save_message(no, m)
  call('HSET', MESSAGES, no, cmsgpack.pack(m))
end

local function message_member(no)
  return string.format('%016d', no)
end

-- Visible from its due time on.
local function file_message(no, m)
  if m[3] > now then
    call('ZADD', MLATER .. m[1], m[3], no)
  else
    call('ZADD', MPRIORITIES .. m[1], -m[2], tostring(m[2]))
    call('ZADD', MREADY .. m[2] .. ':' .. m[1], m[3], message_member(no))
  end
end

local function drop_message(no, m)
  call('HDEL', MESSAGES, no)
  call('HDEL', TEXTS, no)
  if m[5] then call('HDEL', DEDUPE, dedupe_field(m[1], m[5])) end
  if call('HINCRBY', SIZES, m[1], -1) <= 0 then call('HDEL', SIZES, m[1]) end
end

local function free_messages(queue, step)
  for _, no in ipairs(call('ZRANGEBYSCORE', MLEASES .. queue, '-inf', now, 'LIMIT', 0, step)) do
    call('ZREM', MLEASES .. queue, no)
    local m = load_message(no)
    if m then
      m[4], m[6], m[7] = m[4] + 1, false, false
      save_message(no, m)
      file_message(tonumber(no), m)
    end
  end
  for _, no in ipairs(call('ZRANGEBYSCORE', MLATER .. queue, '-inf', now, 'LIMIT', 0, step)) do
    call('ZREM', MLATER .. queue, no)
    local m = load_message(no)
    if m then file_message(tonumber(no), m) end
  end
end

-- Takes the next ones out of the ready sets, in order: arrival numbers.
local function take_messages(queue, max)
  local taken = {}
  -- Each of these has one at least, so no more are needed.
  for _, priority in ipairs(call('ZRANGE', MPRIORITIES .. queue, 0, max - 1)) do
    if #taken >= max then break end
    local key = MREADY .. priority .. ':' .. queue
    local popped = call('ZPOPMIN', key, max - #taken)
    for i = 1, #popped, 2 do taken[#taken + 1] = tonumber(popped[i]) end
    if call('EXISTS', key) == 0 then call('ZREM', MPRIORITIES .. queue, priority) end
  end
  return taken
end

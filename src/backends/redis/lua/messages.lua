-- messages.lua: the plain queue: opaque bodies, separate from the items of the ledger.
--
-- A message is a packed array in the hash `messages` (queue, priority, due, deliveries, dedupe key or false, token or false,
-- until or false, id, deliveries that began to run, whether this one did, what its consumer keeps with it or false) and its text in the hash `message-bodies`, both by arrival number.
local MESSAGES, MESSAGE_BODIES, DEDUPE, QUEUE_SIZES = prefix .. ':messages', prefix .. ':message-bodies', prefix .. ':dedupe', prefix .. ':queue-sizes'
local MESSAGE_READY, MESSAGE_PRIORITIES = prefix .. ':message-ready:', prefix .. ':message-priorities:'
local MESSAGE_DELAYED, MESSAGE_LEASES, MESSAGE_SEQ = prefix .. ':message-delayed:', prefix .. ':message-leases:', prefix .. ':message-seq'

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
    call('ZADD', MESSAGE_DELAYED .. m[1], m[3], no)
  else
    call('ZADD', MESSAGE_PRIORITIES .. m[1], -m[2], tostring(m[2]))
    call('ZADD', MESSAGE_READY .. m[2] .. ':' .. m[1], m[3], message_member(no))
  end
end

-- The envelope that a body is, or nil.
local function envelope_in(body)
  local is_json, e = pcall(cjson.decode, body)
  local is_one = is_json and type(e) == 'table' and type(e.id) == 'string' and type(e.type) == 'string' and
    type(e.groupId) == 'string' and type(e.input) == 'string'
  return is_one and e or nil
end

-- On a native namespace no handler would ever see any other body.
local function may_enter(body)
  return call('GET', prefix .. ':mode') ~= 'native' or envelope_in(body) ~= nil
end

local function add_message(m, body)
  local no = call('INCR', MESSAGE_SEQ)
  save_message(no, m)
  call('HSET', MESSAGE_BODIES, no, body)
  call('HINCRBY', QUEUE_SIZES, m[1], 1)
  file_message(no, m)
  notify_ready(m[1], m[3])
end

local function drop_message(no, m)
  call('HDEL', MESSAGES, no)
  call('HDEL', MESSAGE_BODIES, no)
  if m[5] then call('HDEL', DEDUPE, dedupe_field(m[1], m[5])) end
  if call('HINCRBY', QUEUE_SIZES, m[1], -1) <= 0 then call('HDEL', QUEUE_SIZES, m[1]) end
end

local function free_messages(queue, step)
  for _, no in ipairs(call('ZRANGEBYSCORE', MESSAGE_LEASES .. queue, '-inf', now, 'LIMIT', 0, step)) do
    call('ZREM', MESSAGE_LEASES .. queue, no)
    local m = load_message(no)
    if m then
      m[4], m[6], m[7] = m[4] + 1, false, false
      save_message(no, m)
      file_message(tonumber(no), m)
    end
  end
  for _, no in ipairs(call('ZRANGEBYSCORE', MESSAGE_DELAYED .. queue, '-inf', now, 'LIMIT', 0, step)) do
    call('ZREM', MESSAGE_DELAYED .. queue, no)
    local m = load_message(no)
    if m then file_message(tonumber(no), m) end
  end
end

-- Takes the next ones out of the ready sets, in order: arrival numbers.
local function take_messages(queue, max)
  local taken = {}
  -- Each priority has at least one message, so no more are needed.
  for _, priority in ipairs(call('ZRANGE', MESSAGE_PRIORITIES .. queue, 0, max - 1)) do
    if #taken >= max then break end
    local key = MESSAGE_READY .. priority .. ':' .. queue
    local popped = call('ZPOPMIN', key, max - #taken)
    for i = 1, #popped, 2 do taken[#taken + 1] = tonumber(popped[i]) end
    if call('EXISTS', key) == 0 then call('ZREM', MESSAGE_PRIORITIES .. queue, priority) end
  end
  return taken
end

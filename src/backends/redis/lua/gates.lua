-- gates.lua: gates, each with the two counts that free the item it holds.
--
-- A gate is a packed array in the hash `gates` (held_id, need, remaining, condition) and the set of members it still waits for; the hash
-- `member-gates` has, for each such member, the packed list of the gates that wait for its end.
local GATES, MEMBER_GATES, GATE_MEMBERS = prefix .. ':gates', prefix .. ':member-gates', prefix .. ':gate-members:'

local gates, undecided, has_member_gates = {}, {}, nil

local function gate_of(key)
  local page = gates[key]
  if page == nil then
    local packed = call('HGET', GATES, key)
    page = false
    if packed then
      local g = cmsgpack.unpack(packed)
      page = { held_id = g[1], need = g[2], remaining = g[3], condition = g[4] }
    end
    gates[key] = page
  end
  return page
end

local function gates_over(member)
  -- Most systems have no gates: one query answers for the whole batch.
  if has_member_gates == nil then has_member_gates = call('EXISTS', MEMBER_GATES) == 1 end
  if not has_member_gates then return {} end
  local packed = call('HGET', MEMBER_GATES, member)
  return packed and cmsgpack.unpack(packed) or {}
end

local function set_gates_over(member, keys)
  if #keys == 0 then call('HDEL', MEMBER_GATES, member) else call('HSET', MEMBER_GATES, member, cmsgpack.pack(keys)) end
  has_member_gates = nil
end

-- The gate is finished: decided, timed out, or its item was removed.
function drop_gate(key)
  if not gate_of(key) then return end
  gates[key] = false
  call('HDEL', GATES, key)
  for _, member in ipairs(call('SMEMBERS', GATE_MEMBERS .. key)) do
    local kept = {}
    for _, other in ipairs(gates_over(member)) do
      if other ~= key then kept[#kept + 1] = other end
    end
    set_gates_over(member, kept)
  end
  call('DEL', GATE_MEMBERS .. key)
end

-- Only the first notification about a member counts: the set has the members that the gate still waits for.
local function notify_gate(key, member, ok)
  local page = gate_of(key)
  if not page or call('SREM', GATE_MEMBERS .. key, member) == 0 then return end
  page.remaining = page.remaining - 1
  if ok or page.condition == 'done' then page.need = page.need - 1 end
  undecided[#undecided + 1] = key
end

local function notify_gates_over(member, ok)
  local keys = gates_over(member)
  if #keys == 0 then return end
  for _, key in ipairs(keys) do notify_gate(key, member, ok) end
  call('HDEL', MEMBER_GATES, member)
  has_member_gates = nil
end

local function open_gate(key, held_id, need, condition, members)
  if gate_of(key) then return end
  local page = { held_id = held_id, need = need, remaining = 0, condition = condition }
  fetch(members)
  for _, member in ipairs(members) do
    local r = item(member)
    local state = r and r[STATE]
    if state == 'c' or state == 'd' then
      if condition == 'done' or state == 'c' then page.need = page.need - 1 end
    else
      -- A light item would not tell its gates.
      if lights[member] then change(member) end
      page.remaining = page.remaining + 1
      call('SADD', GATE_MEMBERS .. key, member)
      local keys = gates_over(member)
      keys[#keys + 1] = key
      set_gates_over(member, keys)
    end
  end
  gates[key] = page
  undecided[#undecided + 1] = key
end

-- Frees the items of gates that were just notified or opened, if their counts decide.
local function decide_gates()
  if #undecided == 0 then return end
  local keys = undecided
  undecided = {}
  for _, key in ipairs(keys) do
    local page = gate_of(key)
    local held = page and item(page.held_id)
    -- Loading the held item may have ended its hold, and with it the gate.
    page = gates[key]
    if page then
      local met = page.need <= 0
      if held and (met or page.need > page.remaining) then
        local more = held[MORE]
        if held[STATE] == 'p' and more and more.hb == 'gate' and more.hk == key then
          change(page.held_id)
          more.hb, more.hk, more.me = nil, nil, met
          held[DUE] = now
          notify_ready(held[QUEUE], now)
        end
        drop_gate(key)
      else
        -- Undecided, or the item that it holds does not exist yet.
        call('HSET', GATES, key, cmsgpack.pack({ page.held_id, page.need, page.remaining, page.condition }))
      end
    end
  end
end

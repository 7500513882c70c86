-- gates.lua: held items, and the two counts that free each of them.
--
-- A gate is a packed array in the hash `gates` (holds, need, left, of) and the set of members it still waits for; the hash
-- `tells` has, for each such member, the packed list of the gates that want to hear of its end.
local GATES, TELLS, WAITS = prefix .. ':gates', prefix .. ':tells', prefix .. ':waits:'

local gates, stirred, has_tells = {}, {}, nil

local function gate_of(key)
  local page = gates[key]
  if page == nil then
    local packed = call('HGET', GATES, key)
    page = false
    if packed then
      local g = cmsgpack.unpack(packed)
      page = { holds = g[1], need = g[2], left = g[3], of = g[4] }
    end
    gates[key] = page
  end
  return page
end

local function gates_over(member)
  -- Most systems have no gates: one look answers for the whole batch.
  if has_tells == nil then has_tells = call('EXISTS', TELLS) == 1 end
  if not has_tells then return {} end
  local packed = call('HGET', TELLS, member)
  return packed and cmsgpack.unpack(packed) or {}
end

local function set_gates_over(member, keys)
  if #keys == 0 then call('HDEL', TELLS, member) else call('HSET', TELLS, member, cmsgpack.pack(keys)) end
  has_tells = nil
end

-- It is over: decided, timed out, or its item is gone.
function drop_gate(key)
  if not gate_of(key) then return end
  gates[key] = false
  call('HDEL', GATES, key)
  for _, member in ipairs(call('SMEMBERS', WAITS .. key)) do
    local kept = {}
    for _, other in ipairs(gates_over(member)) do
      if other ~= key then kept[#kept + 1] = other end
    end
    set_gates_over(member, kept)
  end
  call('DEL', WAITS .. key)
end

-- The first word about a member counts: the set holds those that the gate still waits for.
local function tell_gate(key, member, ok)
  local page = gate_of(key)
  if not page or call('SREM', WAITS .. key, member) == 0 then return end
  page.left = page.left - 1
  if ok or page.of == 'done' then page.need = page.need - 1 end
  stirred[#stirred + 1] = key
end

local function tell_gates_over(member, ok)
  local keys = gates_over(member)
  if #keys == 0 then return end
  for _, key in ipairs(keys) do tell_gate(key, member, ok) end
  call('HDEL', TELLS, member)
  has_tells = nil
end

local function open_gate(key, holds, need, of, members)
  if gate_of(key) then return end
  local page = { holds = holds, need = need, left = 0, of = of }
  fetch(members)
  for _, member in ipairs(members) do
    local r = item(member)
    local state = r and r[STATE]
    if state == 's' or state == 'd' then
      if of == 'done' or state == 's' then page.need = page.need - 1 end
    else
      page.left = page.left + 1
      call('SADD', WAITS .. key, member)
      local keys = gates_over(member)
      keys[#keys + 1] = key
      set_gates_over(member, keys)
    end
  end
  gates[key] = page
  stirred[#stirred + 1] = key
end

-- Frees what the gates that have just been told, opened or met hold, if their counts decide.
local function decide_gates()
  if #stirred == 0 then return end
  local keys = stirred
  stirred = {}
  for _, key in ipairs(keys) do
    local page = gate_of(key)
    local held = page and item(page.holds)
    -- Looking at the held item may have ended its hold, and with it the gate.
    page = gates[key]
    if page then
      local met = page.need <= 0
      if held and (met or page.need > page.left) then
        local more = held[MORE]
        if held[STATE] == 'p' and more and more.hb == 'gate' and more.hk == key then
          change(page.holds)
          more.hb, more.hk, more.me = nil, nil, met
          held[DUE] = now
          nudge(held[QUEUE], now)
        end
        drop_gate(key)
      else
        -- Undecided, or the item that it holds has yet to come.
        call('HSET', GATES, key, cmsgpack.pack({ page.holds, page.need, page.left, page.of }))
      end
    end
  end
end

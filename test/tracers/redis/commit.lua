-- commit.lua: apply a batch of settlements, each whole or not at all, each behind its guard.
--
-- KEYS  prefix        every key begins with it; its hash tag keeps them in one slot
-- ARGV  now           epoch ms, or '' for the server's time
--       pushes        how many items the batch may bring
--       settlements   each: guard ('lease' id token | 'absent' id ''), the number of words that follow, and those words:
--                       expect     group version
--                       push       id queue delay holdBy holdKey gated alone group priority body
--                       move       group by keep
--                       contribute group value final
--                       openGate   key holds need of count member...
--                       finish     id ending keep result
--                       park       id ending keep error class
--                       retryAt    id attempt delay
--                       tellGate   key member ok
--                     '' stands for "none"; result, which may be empty, has a '=' before it.
-- REPLY {kinds, closed, conflicts}
--       kinds      one letter for each settlement: a applied, r repeated, s stale, c conflict
--       closed     settlement (from 1), group, value or false, ...
--       conflicts  settlement, group, value or false, final, version, ...
--
-- An item is a small hash, whose short values Redis packs into one piece of memory, and a string with its body, which would
-- unpack it: half the memory of one hash with everything.
--
-- A script runs alone, so a guard that holds goes on holding. Group and gate counts are read once and written once;
-- whether a group closed, or a gate decided, is settled when the whole batch has moved them. What goes to one key for
-- many items (ready, leases, ended) goes there in one call: calls are what a script spends its time on.
local prefix = KEYS[1]
local call = redis.call
local now = tonumber(ARGV[1])
if not now then
  local time = call('TIME')
  now = time[1] * 1000 + math.floor(time[2] / 1000)
end
-- Arrival numbers for the whole batch at once.
local pushes = tonumber(ARGV[2])
local seq = pushes > 0 and call('INCRBY', prefix .. ':seq', pushes) - pushes or 0
local at = 2

local ITEM, BODY, OUTCOME, VALUE = prefix .. ':item:', prefix .. ':body:', prefix .. ':outcome:', prefix .. ':value:'
local GROUP, GATE, WAITS, TELLS = prefix .. ':group:', prefix .. ':gate:', prefix .. ':waits:', prefix .. ':tells:'
local READY, LATER, PRIORITIES = prefix .. ':ready:', prefix .. ':later:', prefix .. ':priorities:'
local LEASES, ENDED = prefix .. ':leases', prefix .. ':ended'

-- ── writes that are gathered: by command and key, their arguments ──

local gathered = {}
local gathered_order = {}
local function gather(command, key, ...)
  local list = gathered[key]
  if not list then
    list = { command = command, key = key }
    gathered[key] = list
    gathered_order[#gathered_order + 1] = list
  end
  for i = 1, select('#', ...) do list[#list + 1] = (select(i, ...)) end
end

-- How many values one call can be given.
local CHUNK = 1000
local function write_gathered()
  for _, list in ipairs(gathered_order) do
    for first = 1, #list, CHUNK do
      call(list.command, list.key, unpack(list, first, math.min(first + CHUNK - 1, #list)))
    end
  end
end

-- ── queues ──

-- Arrival breaks ties between equal due times: members of a sorted set with one score stand in the order of their text.
local function make_ready(id, queue, priority, due, arrival)
  local ready = READY .. queue .. ':' .. priority
  if not gathered[ready] then call('ZADD', PRIORITIES .. queue, -tonumber(priority), priority) end
  gather('ZADD', ready, due, string.format('%016d:', arrival) .. id)
end

-- ── groups ──

local groups = {}
local group_order = {}
local function keep_group(id, page)
  page.before, page.written = page.open, true
  groups[id] = page
  group_order[#group_order + 1] = id
  return page
end

-- The value of a group that lives on its root.
local function value_of(id)
  return call('GET', VALUE .. id) or call('GET', OUTCOME .. id)
end

local function group_of(id)
  local page = groups[id]
  if page then return page end
  local row = call('HMGET', GROUP .. id, 'open', 'value', 'final', 'version')
  if row[1] then
    return keep_group(id, { open = tonumber(row[1]), value = row[2], final = row[3], version = tonumber(row[4]) })
  end
  -- A root alone in its group carries the group on its own record: open while it is unfinished, and then its value.
  local root = call('HMGET', ITEM .. id, 'alone', 'state', 'groupFinal', 'groupVersion')
  if root[1] ~= '1' then return keep_group(id, { open = 0, value = false, final = '0', version = 0 }) end
  local ended = root[2] == 'success' or root[2] == 'dead'
  return keep_group(id, {
    open = ended and 0 or 1, value = root[4] and root[4] ~= '0' and value_of(id), final = root[3] or '0', version = tonumber(root[4] or '0'),
    alone = true,
  })
end

-- ── gates ──

local gates = {}
local gate_order = {}
local function gate_of(key)
  local page = gates[key]
  if page ~= nil then return page end
  local row = call('HMGET', GATE .. key, 'holds', 'need', 'left', 'of')
  if not row[1] then return false end
  page = { holds = row[1], need = tonumber(row[2]), left = tonumber(row[3]), of = row[4] }
  gates[key] = page
  gate_order[#gate_order + 1] = key
  return page
end

-- The first word about a member counts: the set holds those that the gate still waits for.
local function tell_gate(key, member, ok)
  local page = gate_of(key)
  if not page or call('SREM', WAITS .. key, member) == 0 then return end
  page.left = page.left - 1
  if ok or page.of == 'done' then page.need = page.need - 1 end
end

local function tell_all(member, ok)
  for _, key in ipairs(call('SMEMBERS', TELLS .. member)) do tell_gate(key, member, ok) end
  call('DEL', TELLS .. member)
end

-- ── effects. `settlement` holds what the effects of one settlement must know of each other ──

local settlement = {}
local effects = {}

function effects.push()
  local id, queue, delay, hold_by, hold_key, gated, alone, group, priority, body = unpack(ARGV, at + 1, at + 10)
  at = at + 10
  seq = seq + 1
  if hold_by == 'gate' then gate_of(hold_key) end
  -- Most often none of the three is there: the item, a gate that waits for it, a group of its name.
  if call('EXISTS', ITEM .. id, TELLS .. id, GROUP .. id) > 0 then
    if call('EXISTS', ITEM .. id) == 1 then
      -- It holds its group open already, or has done so: counted again it would keep the group open for ever.
      settlement.coalesced = settlement.coalesced or {}
      settlement.coalesced[group] = (settlement.coalesced[group] or 0) + 1
      return
    end
    if call('EXISTS', TELLS .. id) == 1 then gated = '1' end
    if call('EXISTS', GROUP .. id) == 1 then alone = '' end
  end
  if alone == '1' and not groups[group] then settlement.brings_alone = group else alone = '' end
  local due = delay ~= '' and now + tonumber(delay) or ''
  call('SET', BODY .. id, body)
  -- Attempt and earliest start are in the body, until a retry changes them.
  call('HSET', ITEM .. id, 'state', 'pending', 'queue', queue, 'priority', priority, 'due', due, 'seq', seq, 'alone', alone)
  if gated == '1' then call('HSET', ITEM .. id, 'gated', '1') end
  if hold_by ~= '' then call('HSET', ITEM .. id, 'holdBy', hold_by, 'holdKey', hold_key) end
  if due == '' then return end
  if due <= now then make_ready(id, queue, priority, due, seq) else gather('ZADD', LATER .. queue, due, id) end
end

function effects.move()
  local id, by, keep = unpack(ARGV, at + 1, at + 3)
  at = at + 3
  if settlement.brings_alone == id then return end
  local page = group_of(id)
  page.open = page.open + by - (settlement.coalesced and settlement.coalesced[id] or 0)
  page.last, page.keep, page.written = settlement.index, keep, false
end

function effects.contribute()
  local id, value, final = unpack(ARGV, at + 1, at + 3)
  at = at + 3
  local page = group_of(id)
  if page.final == '1' then return end
  page.value, page.final, page.version, page.written = value, final, page.version + 1, false
end

function effects.openGate()
  local key, holds, need, of, count = unpack(ARGV, at + 1, at + 5)
  local first = at + 6
  at = at + 5 + count
  if gate_of(key) then return end
  local page = { holds = holds, need = tonumber(need), left = 0, of = of }
  for i = first, at do
    local member = ARGV[i]
    local state = call('HGET', ITEM .. member, 'state')
    if state == 'success' or state == 'dead' then
      if of == 'done' or state == 'success' then page.need = page.need - 1 end
    else
      page.left = page.left + 1
      call('SADD', WAITS .. key, member)
      call('SADD', TELLS .. member, key)
      if member == settlement.id then
        settlement.gated = '1'
      elseif state then
        call('HSET', ITEM .. member, 'gated', '1')
      end
    end
  end
  gates[key] = page
  gate_order[#gate_order + 1] = key
end

-- The token stays where it is, and says who settled it: a commit that is repeated is known by it.
local function end_item(id, state, ending, keep, outcome, class)
  local key = ITEM .. id
  local page = groups[id]
  if page and page.alone and page.open == 0 then
    -- A root that ends as it began, alone: its record carries the group's value, and the group needs none.
    page.written = true
    call('HSET', key, 'state', state, 'ending', ending, 'endAt', now, 'class', class, 'groupFinal', page.final,
      'groupVersion', page.version)
    -- Most often the group's value is the root's result; then it is kept once.
    if page.version > 0 and page.value ~= outcome then call('SET', VALUE .. id, page.value, 'PX', keep) end
  else
    call('HSET', key, 'state', state, 'ending', ending, 'endAt', now, 'class', class)
  end
  if outcome then call('SET', OUTCOME .. id, outcome, 'PX', keep) end
  call('PEXPIRE', key, keep)
  call('PEXPIRE', BODY .. id, keep)
  gather('ZREM', LEASES, id)
  gather('ZADD', ENDED, now, id)
  if settlement.gated == '1' then tell_all(id, state == 'success') end
end

function effects.finish()
  local id, ending, keep, result = unpack(ARGV, at + 1, at + 4)
  at = at + 4
  end_item(id, 'success', ending, keep, result ~= '' and string.sub(result, 2), '')
end

function effects.park()
  local id, ending, keep, text, class = unpack(ARGV, at + 1, at + 5)
  at = at + 5
  end_item(id, 'dead', ending, keep, text, class)
end

function effects.retryAt()
  local id, attempt, delay = unpack(ARGV, at + 1, at + 3)
  at = at + 3
  local key, due = ITEM .. id, now + tonumber(delay)
  local row = call('HMGET', key, 'queue', 'priority', 'seq')
  call('HSET', key, 'state', 'pending', 'settledBy', settlement.token, 'attempt', attempt, 'startAt', due, 'due', due)
  call('HDEL', key, 'token', 'until', 'worker', 'runAt', 'deliveries')
  gather('ZREM', LEASES, id)
  if due > now then gather('ZADD', LATER .. row[1], due, id) else make_ready(id, row[1], row[2], due, row[3]) end
end

function effects.tellGate()
  local key, member, ok = unpack(ARGV, at + 1, at + 3)
  at = at + 3
  tell_gate(key, member, ok == '1')
end

-- ── the batch ──

-- A letter if the guard does not hold; otherwise `settlement` knows what was read of the item.
local function unheld(guard, id, token)
  if guard == 'absent' then return call('EXISTS', ITEM .. id) == 1 and 'r' or nil end
  local row = call('HMGET', ITEM .. id, 'token', 'state', 'settledBy', 'gated', 'alone')
  if row[1] ~= token then return row[3] == token and 'r' or 's' end
  if row[2] ~= 'running' then return 'r' end
  settlement.id, settlement.token, settlement.gated = id, token, row[4]
  if row[5] == '1' and not groups[id] then
    keep_group(id, { open = 1, value = false, final = '0', version = 0, alone = true })
  end
  return nil
end

local kinds, closed, conflicts = {}, {}, {}

local function conflict(upto)
  while at < upto and ARGV[at + 1] == 'expect' do
    local id, version = ARGV[at + 2], tonumber(ARGV[at + 3])
    at = at + 3
    local page = group_of(id)
    if page.version ~= version then
      for _, word in ipairs({ settlement.index, id, page.value, page.final, page.version }) do
        conflicts[#conflicts + 1] = word
      end
      return 'c'
    end
  end
  return nil
end

while at < #ARGV do
  local guard, id, token, count = unpack(ARGV, at + 1, at + 4)
  at = at + 4
  local upto = at + count
  settlement = { index = #kinds + 1 }
  local kind = unheld(guard, id, token) or conflict(upto)
  if kind then
    at = upto
  else
    kind = 'a'
    while at < upto do
      at = at + 1
      effects[ARGV[at]]()
    end
  end
  kinds[#kinds + 1] = kind
end

-- Before gates decide: what they free may just have been put among those that are due later.
write_gathered()
gathered, gathered_order = {}, {}

for _, key in ipairs(gate_order) do
  local page = gates[key]
  local met = page.need <= 0
  local held = call('HMGET', ITEM .. page.holds, 'state', 'holdBy', 'holdKey', 'queue', 'priority', 'seq', 'due')
  -- A gate may be opened before the item that it holds comes.
  if not held[1] or not (met or page.need > page.left) then
    call('HSET', GATE .. key, 'holds', page.holds, 'need', page.need, 'left', page.left, 'of', page.of)
  else
    local in_time = held[7] == '' or tonumber(held[7] or '0') > now
    if held[1] == 'pending' and held[2] == 'gate' and held[3] == key and in_time then
      call('HSET', ITEM .. page.holds, 'due', now, 'met', met and '1' or '0')
      call('HDEL', ITEM .. page.holds, 'holdBy', 'holdKey')
      call('ZREM', LATER .. held[4], page.holds)
      make_ready(page.holds, held[4], held[5], now, held[6])
    end
    for _, member in ipairs(call('SMEMBERS', WAITS .. key)) do call('SREM', TELLS .. member, key) end
    call('DEL', GATE .. key, WAITS .. key)
  end
end

for _, id in ipairs(group_order) do
  local page = groups[id]
  if not page.written then
    local key = GROUP .. id
    call('HSET', key, 'open', page.open, 'final', page.final, 'version', page.version)
    if page.value then call('HSET', key, 'value', page.value) end
    -- Kept, once it has closed, as long as the item that closed it.
    if page.open <= 0 and page.keep then call('PEXPIRE', key, page.keep) elseif page.open > 0 then call('PERSIST', key) end
    if page.alone then
      call('HDEL', ITEM .. id, 'alone', 'groupFinal', 'groupVersion')
      call('DEL', VALUE .. id)
    end
  end
  if page.before > 0 and page.open <= 0 and page.last then
    closed[#closed + 1] = page.last
    closed[#closed + 1] = id
    closed[#closed + 1] = page.value
  end
end

write_gathered()
return { table.concat(kinds), closed, conflicts }

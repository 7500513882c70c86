-- commit.lua: applies a batch of settlements, each completely or not at all, each behind its guard.
--
-- ARGV  now
--       count, ids       the items that the batch names: loaded in one call
--       count, groups    likewise
--       settlements      each: guard, id, argument, the number of words that follow, and those words
--         guards         lease id token · absent id '' · status id letters · schedule name at · none '' ''
--         conditions     first of the words: expect group version · ended id
--         effects        enqueue id queue delay holdBy holdKey group type priority attempt waiter deadline worker token lease head body tags tag...
--                        attempt id fingerprint endedAt class text · retry id attempt delay · release id delay holdBy holdKey
--                        complete id ending keep result · deadLetter id ending keep class error fingerprint
--                        redrive id delay · delete id
--                        move group by keep · setGroupValue group value final · openGate key heldId need condition count member...
--                        notifyGate key member completed · notify inbox count id... · schedule name nextAt spec · requestCancel id reason
--                        pause key · resume key queue · log text
--       '' means "none"; a result, which may be empty, has a '=' before it; a delay of '' never ends by itself; a group
--       whose keep is 'never' is kept forever.
-- REPLY kinds, closed, conflicts, whether expired entries are left, how many items were removed
--       kinds      one letter for each settlement: a applied, r repeated, s stale, c conflict
--       closed     settlement (from 1), group, value or false, watched (1 or 0), ...
--       conflicts  settlement, group, value or false, final (1 or 0), version, ...
--
-- Scripts run one at a time, so a guard stays true while its settlement is applied. Group counts are compared with 0 once the whole
-- batch has changed them. Everything is read before anything is written.
local SCHEDULES, LOG = prefix .. ':schedules', prefix .. ':action-log'
local MAX_LOG, MAX_ATTEMPTS = 1000, 100
local at = 1

local function word()
  at = at + 1
  return ARGV[at]
end

local function words()
  local list = {}
  for i = 1, tonumber(word()) do list[i] = word() end
  return list
end

fetch(words())
fetch_groups(words())

local moved, closed, conflicts, kinds = {}, {}, {}, {}
local settlement
local effects = {}

local function move_group(id, by, keep)
  local page = group_of(id)
  page.open = page.open + by
  page.keep = keep or page.keep or DAY
  if not page.last then moved[#moved + 1] = id end
  page.last = settlement
  change_group(id, page)
end

local function due_after(delay)
  return delay ~= '' and now + tonumber(delay) or false
end

function effects.enqueue()
  local id, queue, delay, hold_by, hold_key = word(), word(), word(), word(), word()
  local group, kind, priority, attempt, waiter, deadline = word(), word(), tonumber(word()), word(), word(), tonumber(word())
  local worker, token, lease, head, body = word(), word(), word(), word(), word()
  local tags = words()
  if item(id) then
    -- The item exists: it was counted in its group before. Counted twice, it would keep the group open forever.
    move_group(group, -1)
    return
  end
  change(id)
  local due, m = due_after(delay), {}
  if attempt ~= '' then m.at = tonumber(attempt) end
  if #tags > 0 then m.tg = tags end
  if deadline then m.dd = deadline end
  if waiter ~= '' then
    m.wt = waiter
    watch_group(group, group_of(group), waiter)
  end
  if hold_by ~= '' and not (due and due <= now) then
    m.hb, m.hk = hold_by, hold_key
    if hold_by == 'gate' then undecided[#undecided + 1] = hold_key end
  end
  local state = 'p'
  if worker ~= '' then
    state = 'r'
    m.wk, m.tk, m.un, m.fe, m.dl, m.ra = worker, token, now + tonumber(lease), 1, 1, now
  else
    notify_ready(queue, due)
  end
  local more = next(m) ~= nil and m
  records[id] = { state, queue, kind, group ~= id and group or false, priority, due, next_seq(), false, more, head }
  put(INPUTS, id, body)
end

function effects.attempt()
  local id, fingerprint, ended_at, class, text = word(), word(), word(), word(), word()
  local r = item(id)
  if not r then return end
  change(id)
  local m = more_of(r)
  m.fp, m.fa, m.fc = nil, nil, nil
  if fingerprint ~= '' then m.fp, m.fa, m.fc = fingerprint, tonumber(ended_at), class ~= '' and class or nil end
  local made = m.na or 0
  if made > 0 then
    local known = fields[ATTEMPTS] and fields[ATTEMPTS][id] or call('HGET', ATTEMPTS, id)
    if known then
      -- An item that is deferred forever must not grow forever: the oldest line goes.
      if made >= MAX_ATTEMPTS then known = string.sub(known, string.find(known, '\n', 1, true) + 1) end
      text = known .. '\n' .. text
    end
  end
  m.na = math.min(made + 1, MAX_ATTEMPTS)
  put(ATTEMPTS, id, text)
end

-- Makes an item pending again. Without a new due time it keeps its place.
local function give_back(id, r, due)
  -- Repairs an item that is in no set, or runs without a lease.
  refile(id)
  local m = more_of(r)
  r[STATE] = 'p'
  if m.hb == 'gate' then drop_gate(m.hk) end
  m.tk, m.un, m.wk, m.ra, m.rn, m.hb, m.hk = nil, nil, nil, nil, nil, nil, nil
  if due ~= nil then r[DUE] = due end
  return m
end

function effects.retry()
  local id, attempt, delay = word(), tonumber(word()), word()
  local r = item(id)
  if not r or r[STATE] == 'c' or r[STATE] == 'd' then return end
  local m = give_back(id, r, due_after(delay))
  m.at, m.sa, m.dl = attempt, r[DUE] or nil, nil
  notify_ready(r[QUEUE], r[DUE])
end

function effects.release()
  local id, delay, hold_by, hold_key = word(), word(), word(), word()
  local r = item(id)
  if not r or r[STATE] == 'c' or r[STATE] == 'd' then return end
  local due
  if delay == 'never' then due = false elseif delay ~= '' then due = now + tonumber(delay) end
  local m = give_back(id, r, due)
  if hold_by ~= '' and not (due and due <= now) then m.hb, m.hk = hold_by, hold_key end
  if not (m.hb and not r[DUE]) then notify_ready(r[QUEUE], r[DUE]) end
end

local function end_item(id, state, ending, keep)
  local r = item(id)
  if not r then return nil end
  change(id)
  local m = more_of(r)
  if m.hb == 'gate' then drop_gate(m.hk) end
  r[STATE] = state
  m.en, m.ea, m.ku = ending, now, keep ~= '' and now + tonumber(keep) or nil
  m.tk, m.un, m.wk, m.rn, m.hb, m.hk, m.ca, m.cl = nil, nil, nil, nil, nil, nil, nil, nil
  settlement.ended = settlement.ended or {}
  settlement.ended[r[GROUP] or id] = m.ku
  if m.wt then notify_item(m.wt, id) end
  if m.ws then
    for _, inbox in ipairs(m.ws) do
      if inbox ~= m.wt then notify_item(inbox, id) end
    end
    m.ws = nil
  end
  notify_gates_over(id, state == 'c')
  return m
end

function effects.complete()
  local id, ending, keep, result = word(), word(), word(), word()
  if end_item(id, 'c', ending, keep) and result ~= '' then put(RESULTS, id, string.sub(result, 2)) end
end

function effects.deadLetter()
  local id, ending, keep, class, text, fingerprint = word(), word(), word(), word(), word(), word()
  local m = end_item(id, 'd', ending, keep)
  if not m then return end
  m.cl = class
  if fingerprint ~= '' then m.fp, m.fa, m.fc = fingerprint, nil, nil end
  put(ERRORS, id, text)
  put(RESULTS, id, false)
end

-- As if it had arrived now, for the first time; only its attempts, its fence and its last settling token are kept.
function effects.redrive()
  local id, delay = word(), word()
  local r = item(id)
  if not r then return end
  change(id)
  local m, due = r[MORE], due_after(delay)
  r[STATE], r[DUE], r[ARRIVAL] = 'p', due, next_seq()
  r[MORE] = {
    sa = due or nil, qa = now, rd = (m.rd or 0) + 1, fe = m.fe, sb = m.sb, wt = m.wt, ws = m.ws, tg = m.tg, na = m.na,
    fp = m.fp, fa = m.fa, fc = m.fc, dd = m.dd and m.dd > now and m.dd or nil,
  }
  put(RESULTS, id, false)
  put(ERRORS, id, false)
  put(PROGRESS, id, false)
  notify_ready(r[QUEUE], due)
end

function effects.delete()
  local id = word()
  local r = item(id)
  if not r then return end
  local m = r[MORE]
  if m and m.hb == 'gate' then drop_gate(m.hk) end
  discard(id)
end

function effects.move()
  local group, by, keep = word(), tonumber(word()), word()
  move_group(group, by, keep == 'never' and keep or tonumber(keep))
end

function effects.setGroupValue()
  local id, value, final = word(), word(), word()
  local page = group_of(id)
  if page.final then return end
  page.value, page.final, page.version = value, final == '1', page.version + 1
  put(VALUES, id, value)
  change_group(id, page)
end

function effects.openGate()
  local key, held_id, need, condition = word(), word(), tonumber(word()), word()
  open_gate(key, held_id, need, condition, words())
end

function effects.notifyGate()
  local key, member, completed = word(), word(), word()
  notify_gate(key, member, completed == '1')
end

function effects.notify()
  local inbox = word()
  for _, id in ipairs(words()) do notify_item(inbox, id) end
end

function effects.schedule()
  local name, next_at, spec = word(), word(), word()
  call('HSET', SCHEDULES, name, next_at .. '\n' .. spec)
end

-- Its worker checks immediately, instead of at its next heartbeat.
function effects.requestCancel()
  local id, reason = word(), word()
  local r = item(id)
  if not r or r[STATE] ~= 'r' then return end
  change(id)
  r[MORE].ca = reason
  notify_item(r[MORE].wk, id)
end

function effects.pause()
  local key = word()
  call('HSET', PAUSES, key, now)
  -- Paused again before all items were freed: the others stay held.
  call('SREM', RESUMING, key)
  pauses = nil
end

function effects.resume()
  local key, queue = word(), word()
  if call('HDEL', PAUSES, key) == 0 then return end
  pauses = nil
  call('SADD', RESUMING, key)
  -- Items that no claim has met are still ready: their workers have to claim.
  if queue ~= '' then
    notify_ready(queue, now)
  else
    for _, field in ipairs(call('HKEYS', COUNTS)) do
      local size, rest = string.match(field, '^.(%d+):(.*)$')
      if size then notify_ready(string.sub(rest, 1, tonumber(size)), now) end
    end
  end
  settlement.resumed = true
end

function effects.log()
  call('LPUSH', LOG, string.format('%.0f', now) .. '\n' .. word())
  call('LTRIM', LOG, 0, MAX_LOG - 1)
end

-- ── guards ──

-- A letter if the guard is not met.
local function unmet(guard, id, argument)
  if guard == 'none' then return nil end
  if guard == 'schedule' then
    local known = call('HGET', SCHEDULES, id)
    local next_at = known and string.match(known, '^[^\n]*') or ''
    return next_at ~= argument and 's' or nil
  end
  local r = item(id)
  if guard == 'absent' then return r and 'r' or nil end
  if not r then return 's' end
  if guard == 'status' then return not string.find(argument, r[STATE], 1, true) and 's' or nil end
  local m = r[MORE]
  if r[STATE] == 'r' and m.tk == argument then
    change(id)
    m.sb = argument
    return nil
  end
  return m and m.sb == argument and 'r' or 's'
end

-- A letter if a condition keeps the whole settlement from happening.
local function hindrance(upto)
  while at < upto do
    local condition = ARGV[at + 1]
    if condition == 'expect' then
      local id, version = ARGV[at + 2], tonumber(ARGV[at + 3])
      at = at + 3
      local page = known_group(id) or new_page()
      if page.version ~= version then
        local n = #conflicts
        conflicts[n + 1], conflicts[n + 2], conflicts[n + 3] = #kinds + 1, id, value_of(id, page)
        conflicts[n + 4], conflicts[n + 5] = page.final and 1 or 0, page.version
        return 'c'
      end
    elseif condition == 'ended' then
      local r = item(ARGV[at + 2])
      at = at + 2
      if not r or r[STATE] == 'p' or r[STATE] == 'r' then return 's' end
    else
      return nil
    end
  end
  return nil
end

-- A worker that holds a lease may end its item on a full server. This comes first, because some effects write immediately.
local first = at
while at < #ARGV do
  local r = ARGV[at + 1] == 'lease' and records[ARGV[at + 2]]
  if r and r[STATE] == 'r' and r[MORE].tk == ARGV[at + 3] then
    even_when_full()
    break
  end
  at = at + 4 + tonumber(ARGV[at + 4])
end
at = first

local resumed = false
while at < #ARGV do
  local guard, id, argument, length = word(), word(), word(), tonumber(word())
  local upto = at + length
  settlement = { index = #kinds + 1 }
  -- Conditions first: a guard that is met is written to the record.
  local kind
  if guard == 'lease' then
    local start = at
    local r = item(id)
    local is_held = r and r[STATE] == 'r' and r[MORE].tk == argument
    kind = is_held and hindrance(upto) or nil
    if not kind then
      at = start
      kind = unmet(guard, id, argument)
      if not kind then hindrance(upto) end
    end
  else
    kind = unmet(guard, id, argument) or hindrance(upto)
  end
  if kind then
    at = upto
  else
    kind = 'a'
    while at < upto do effects[word()]() end
    decide_gates()
    resumed = resumed or settlement.resumed
  end
  kinds[#kinds + 1] = kind
end

-- ── groups: counts are compared once the whole batch has changed them ──

for _, id in ipairs(moved) do
  local page = pages[id]
  local last = page.last
  if page.open > 0 then
    page.done, page.ku = false, false
  else
    local was_done = page.done
    page.done, page.ku = true, page.keep ~= 'never' and now + page.keep
    -- It is removed with the item that closed it; without one, by its own entry.
    if page.ku and (without_item[id] or not (last.ended and last.ended[id] == page.ku)) then add(RETENTION, page.ku, 'g' .. id) end
    if not was_done then
      local n = #closed
      closed[n + 1], closed[n + 2], closed[n + 3] = last.index, id, value_of(id, page)
      closed[n + 4] = page.watchers and 1 or 0
      if page.watchers then
        for _, inbox in ipairs(page.watchers) do notify_group(inbox, id) end
        page.watchers = false
      end
    end
  end
end

if resumed then free_resumed(1000) end
local has_expired = sweep(2 * #kinds + 8)
settle_groups()
settle_records()
publish_all()
return { table.concat(kinds), closed, conflicts, has_expired and 1 or 0, removed_items }

-- claim.lua: reclaims lapsed leases, promotes due items, then leases ready items: by priority, then due time, then arrival, whatever
-- their type. With rooms, a few items whose deadline has passed come first.
--
-- ARGV  now, token (the lease of a whole record has it with its number among those of the reply, from 0), lease (ms), worker,
--       step (the most lapsed, due, expired or plain entries that one call handles),
--       how many rooms ('': any type, and no limit but that of the queue), and for each: max, how many types, types...;
--       and queue, max, how many expired ones at most (with rooms) for each queue in order
-- REPLY now, more, next due or false, whether expired entries are left, how many items were removed, unreadable {queue, body...},
--       types of the runs that were cut off {...}, items...
--       item: id, queue, body, head or false, type, group or false, attempt, startAt, queueAt, redrives, fence, lapses, crashes,
--       deliveries, met, cancel reason; or, for light items of one claim: 1, queue, number of the claim, {ids}, {texts}
local token, lease, worker, step = ARGV[2], tonumber(ARGV[3]), ARGV[4], tonumber(ARGV[5])
-- The most empty lists that one call clears away.
local MAX_CLEARED = 50
local until_at = now + lease
local more, next_due, unreadable = 0, false, {}

-- By type: how much of its room is left; nil: any type has room.
local rooms, types = nil, {}
local first_queue = 7
if ARGV[6] ~= '' then
  rooms = {}
  for _ = 1, tonumber(ARGV[6]) do
    local room = { left = tonumber(ARGV[first_queue]) }
    local last = first_queue + 1 + tonumber(ARGV[first_queue + 1])
    for i = first_queue + 2, last do
      rooms[ARGV[i]] = room
      if room.left > 0 then types[#types + 1] = ARGV[i] end
    end
    first_queue = last + 1
  end
end

-- Blocks that end with one function: a script has at most 200 local names at a time.
local adopt
do
-- The server reads NaN and Infinity as JSON. Sorting by one raises in the middle of the script, and other readers reject the body,
-- so such a body counts as unreadable.
local function is_sound(value)
  if type(value) == 'number' then return value == value and value ~= math.huge and value ~= -math.huge end
  if type(value) ~= 'table' then return true end
  for _, part in pairs(value) do
    if not is_sound(part) then return false end
  end
  return true
end

-- The limit of envelope.ts: further tags are left out.
local MOST_TAGS = 32

-- Splits the text of an envelope in two: the envelope without its input, and the input as it was written, as JSON. A list of items
-- then reads no inputs. Returns nil for a text in an unexpected form: it stays whole.
local function split_envelope(body)
  -- Escapes become two letters each: every quote that is left begins or ends a text.
  local plain = string.gsub(body, '\\.', '__')
  local depth, at, key, from, to = 0, 1, nil, nil, nil
  local found = string.find(plain, '["{}%[%]]')
  while found do
    local sign = string.byte(plain, found)
    at = found + 1
    if sign == 34 then
      local close = string.find(plain, '"', at, true)
      if not close then return nil end
      at = close + 1
      if depth == 1 and close - found == 6 and string.sub(plain, found + 1, close - 1) == 'input' and string.find(plain, '^%s*:', at) then
        local open = string.match(plain, '^%s*:%s*()"', at)
        if key or not open then return nil end
        key, from, to = found, open, string.find(plain, '"', open + 1, true)
        if not to then return nil end
        at = to + 1
      end
    else
      depth = depth + ((sign == 123 or sign == 91) and 1 or -1)
    end
    found = string.find(plain, '["{}%[%]]', at)
  end
  if not key then return nil end
  local before, after = string.sub(body, 1, key - 1), string.sub(body, to + 1)
  local comma = string.match(after, '^%s*,()')
  if comma then after = string.sub(after, comma) else before = string.gsub(before, ',%s*$', '') end
  return before .. after, string.sub(body, from, to)
end

local MOST_LETTERS = 10000
-- A message that was pushed as text becomes an item if it is an envelope; otherwise it is removed and reported.
function adopt(queue, max)
  if call('EXISTS', MESSAGE_PRIORITIES .. queue, MESSAGE_DELAYED .. queue, MESSAGE_LEASES .. queue) == 0 then return end
  free_messages(queue, max)
  local taken = take_messages(queue, max)
  if #taken == max then more = 1 end
  for _, no in ipairs(taken) do
    local m, body = load_message(no), call('HGET', MESSAGE_BODIES, no)
    drop_message(no, m)
    local e = envelope_in(body)
    if not e or not is_sound(e) then
      unreadable[#unreadable + 1], unreadable[#unreadable + 2] = queue, body
      -- Its sender was told that it is accepted: it is kept where people look.
      local entry = cjson.encode({ body = body, error = 'NOT_AN_ENVELOPE: pushed before a work system used this backend natively' })
      bury(queue, m[8], string.format('%.0f', now) .. '\n' .. entry, MOST_LETTERS)
    elseif not item(e.id) then
      change(e.id)
      local extra = {}
      if type(e.attempt) == 'number' and e.attempt > 1 then extra.at = math.floor(e.attempt) end
      if type(e.waiter) == 'string' then extra.wt = e.waiter end
      if type(e.deadline) == 'number' then extra.dd = e.deadline end
      if type(e.tags) == 'table' and #e.tags > 0 then
        extra.tg = {}
        for _, tag in ipairs(e.tags) do
          if #extra.tg < MOST_TAGS and type(tag) == 'string' then extra.tg[#extra.tg + 1] = tag end
        end
      end
      local priority = type(e.priority) == 'number' and e.priority or m[2]
      local head, input = split_envelope(body)
      records[e.id] = { 'p', queue, e.type, e.groupId ~= e.id and e.groupId or false, priority, m[3], next_seq(), false, extra, head }
      put(INPUTS, e.id, input or body)
    end
  end
end
end

even_when_full()
local has_expired = sweep(step)
if free_resumed(step) then more = 1 end
for i = first_queue, #ARGV, 3 do
  local queue = ARGV[i]
  if reclaim(queue, step) then more = 1 end
  -- At least as many as the caller wants, so that one call can hand out that many.
  if promote(queue, math.max(step, tonumber(ARGV[i + 1]))) then more = 1 end
  adopt(queue, step)
end
settle_records()

-- What is handed out; those of it that are whole records: their ids, and where they are in the list.
local items, ids, whole = {}, {}, {}

local function hand_out(id, r, queue)
  local m = more_of(r)
  r[STATE] = 'r'
  m.tk, m.un, m.wk, m.ra, m.hb, m.hk = token .. '.' .. #ids, until_at, worker, now, nil, nil
  m.fe, m.dl = (m.fe or 0) + 1, (m.dl or 0) + 1
  local met = false
  if m.me ~= nil then met = m.me and '1' or '0' end
  ids[#ids + 1] = id
  -- Its input comes last.
  whole[#ids] = #items + 1
  items[#items + 1] = {
    id, queue, false, r[HEAD] or false, r[TYPE], r[GROUP], m.at or false, m.sa or false, m.qa or false, m.rd or false, m.fe, m.la or 0, m.cr or 0, m.dl, met,
    m.ca or false,
  }
end

-- ── light items leave as they are stored: those of one queue and type under one claim ──

local CLAIM_SEQ = prefix .. ':claim-seq'
local claim_no, light_claims = nil, {}
-- Those whose input is kept apart: id, and where their text is.
local long = {}

-- Rises with every claim, also where the time does not. Odd: other items of the list of active ones have even scores.
local function next_claim()
  claim_no = math.max((claim_no or tonumber(call('GET', CLAIM_SEQ) or '-1')) + 2, now * PLACES + 1)
  return string.format('%.0f', claim_no)
end

local function hand_out_light(queue, queue_type, id, text)
  local claim, last = light_claims[queue_type], items[#items]
  if not claim then
    claim = { queue = queue, no = next_claim(), count = 0 }
    light_claims[queue_type] = claim
  end
  if not last or last.claim ~= claim then
    last = { 1, queue, claim.no, {}, {}, claim = claim, active = INDEX .. 'a:' .. queue_type }
    items[#items + 1] = last
  end
  local n = #last[4] + 1
  last[4][n], last[5][n] = id, text
  if string.byte(text, -1) == 30 then long[#long + 1] = { id, last[5], n } end
  claim.count = claim.count + 1
  add(last.active, claim.no, id)
end

local function write_light_claims()
  local names = {}
  for i = 1, #long do names[i] = long[i][1] end
  for i, input in ipairs(many(INPUTS, names)) do
    local texts, n = long[i][2], long[i][3]
    if input then texts[n] = texts[n] .. input end
  end
  for queue_type, claim in pairs(light_claims) do
    call('HSET', CLAIMS, claim.no, string.format('%013d', now) .. queue_type .. '\30' .. token .. '\30' .. worker)
    call('ZADD', CLAIM_ENDS .. claim.queue, until_at, claim.no)
    count('w', queue_type, -claim.count)
    count('a', queue_type, claim.count)
  end
  if claim_no then call('SET', CLAIM_SEQ, string.format('%.0f', claim_no)) end
end

-- ── the ready items of a queue, type by type: a type without room is never scanned ──

-- The ready sets that items were taken out of, each with its lane and priority.
local used = {}
local expired_of, serve_expired, serve
-- Queues that may hold more expired items than their share allowed.
local piled = {}
do
local cleared = 0

-- The next item of a lane (one type of a queue), in `member`, `due` and `priority`. False: there is none, or too many
-- empty lists come before it.
local function advance(lane)
  lane.member = false
  while true do
    local page, i = lane.page, lane.i
    if i < #page then
      lane.member, lane.due = page[i], tonumber(page[i + 1])
      return true
    end
    if #page == 2 * lane.step then
      lane.from = lane.from + lane.step
    else
      local found = call('ZRANGE', PRIORITIES .. lane.queue_type, lane.rank, lane.rank, 'WITHSCORES')
      if not found[1] then return false end
      lane.name, lane.priority, lane.from = found[1], -tonumber(found[2]), 0
      lane.key = READY .. found[1] .. ':' .. lane.queue_type
    end
    -- Taken items leave their set when the script ends: until then every rank stays the same.
    lane.page, lane.i = call('ZRANGE', lane.key, lane.from, lane.from + lane.step - 1, 'WITHSCORES'), 1
    if lane.from == 0 then
      if #lane.page > 0 then
        lane.rank = lane.rank + 1
      else
        call('ZREM', PRIORITIES .. lane.queue_type, lane.name)
        cleared = cleared + 1
        if cleared >= MAX_CLEARED then return false end
      end
    end
  end
end

-- The types to claim of a queue.
local function kinds_of(queue)
  if rooms then return types end
  local kinds, waiting = {}, 'w' .. queue_type_of(queue, '')
  for _, field in ipairs(call('HKEYS', COUNTS)) do
    if string.sub(field, 1, #waiting) == waiting then kinds[#kinds + 1] = string.sub(field, #waiting + 1) end
  end
  return kinds
end

local function pause_of(queue, kind)
  return paused('queue:' .. queue) and 'queue:' .. queue or paused('type:' .. kind) and 'type:' .. kind or nil
end

local function lanes_of(queue, kinds, wanted)
  local lanes = {}
  -- With many types, few items of each are needed.
  local some = math.max(2, math.ceil(2 * wanted / math.max(1, #kinds)))
  for _, kind in ipairs(kinds) do
    local lane = { queue_type = queue_type_of(queue, kind), room = rooms and rooms[kind], pause = pause_of(queue, kind), rank = 0, step = some, page = {}, i = 1 }
    if advance(lane) then lanes[#lanes + 1] = lane end
  end
  return lanes
end

-- Whether the next item of one lane comes before that of another.
local function is_before(a, b)
  if a.priority ~= b.priority then return a.priority > b.priority end
  if a.due ~= b.due then return a.due < b.due end
  return a.member < b.member
end

-- Lanes are a heap by their next item: this one sinks to its place.
local function sink(heap, i)
  local lane, size = heap[i], #heap
  while 2 * i <= size do
    local child = 2 * i
    if child < size and is_before(heap[child + 1], heap[child]) then child = child + 1 end
    if not is_before(heap[child], lane) then break end
    heap[i] = heap[child]
    i = child
  end
  heap[i] = lane
end

-- The lane whose next item comes first of all that have room. Lanes without room drop out: their items are for another claim.
local function first_of(heap)
  while heap[1] do
    local lane = heap[1]
    if lane.member and (lane.pause or not lane.room or lane.room.left > 0) then return lane end
    heap[1] = heap[#heap]
    heap[#heap] = nil
    if heap[1] then sink(heap, 1) end
  end
  return nil
end

function expired_of(queue, most)
  return call('ZRANGEBYSCORE', EXPIRING .. queue, '-inf', '(' .. string.format('%.17g', now), 'LIMIT', 0, most)
end

-- An expired item needs no room: the worker that claims it ends it. Paused items are held on the way, and take no share. Returns how many
-- were handed out.
function serve_expired(queue, share)
  local served, passed, is_left = 0, 0, false
  repeat
    local members, names = expired_of(queue, math.max(1, share - served)), {}
    for i = 1, #members do names[i] = string.sub(members[i], 13) end
    fetch(names)
    for i, id in ipairs(names) do
      local r = records[id]
      local _, member = nil, nil
      if r then _, member = expiry_of(id, r) end
      local pause = member == members[i] and pause_of(queue, r[TYPE])
      if member ~= members[i] then
        -- The record disagrees with this entry: remove the entry.
        remove(EXPIRING .. queue, members[i])
        passed = passed + 1
      elseif pause then
        change(id)
        local m = more_of(r)
        m.hb, m.hk = 'pause', pause
        passed = passed + 1
      elseif served < share then
        local queue_type = queue_type_of(queue, r[TYPE])
        change(id)
        used[READY .. r[PRIORITY] .. ':' .. queue_type] = { queue_type, tostring(r[PRIORITY]) }
        hand_out(id, r, queue)
        served = served + 1
      else
        is_left = true
      end
    end
    settle_records()
  until #members == 0 or is_left or passed >= step
  if is_left then piled[#piled + 1] = queue elseif passed >= step then more = 1 end
  return served
end

-- Leases up to `wanted` items of a queue. Paused items are held on the way, and take no room.
function serve(queue, wanted)
  local lanes, passed, heap = lanes_of(queue, kinds_of(queue), wanted), 0, {}
  for i, one in ipairs(lanes) do heap[i] = one end
  for i = math.floor(#heap / 2), 1, -1 do sink(heap, i) end
  local lane
  repeat
    local chosen, names = {}, {}
    lane = first_of(heap)
    while lane and wanted > 0 and passed < step and cleared < MAX_CLEARED do
      local id = string.sub(lane.member, 13)
      names[#names + 1] = id
      chosen[#chosen + 1] = { id, lane.key, lane.member, lane }
      used[lane.key] = { lane.queue_type, lane.name }
      if lane.pause then
        passed = passed + 1
      else
        wanted = wanted - 1
        if lane.room then lane.room.left = lane.room.left - 1 end
      end
      lane.i = lane.i + 2
      if advance(lane) then sink(heap, 1) end
      lane = first_of(heap)
    end
    local texts, others, their_texts = many(ITEMS, names), {}, {}
    for i = 1, #names do
      local text = texts[i]
      if text and string.byte(text) == LIGHT and not chosen[i][4].pause then
        chosen[i].text = text
      elseif records[names[i]] == nil then
        others[#others + 1], their_texts[#others + 1] = names[i], text
      end
    end
    load_texts(others, their_texts)
    for _, one in ipairs(chosen) do
      local id, key, member, from = one[1], one[2], one[3], one[4]
      local r = records[id]
      local place, _, name
      if r then place, _, name = place_of(id, r) end
      if one.text then
        remove(key, member)
        hand_out_light(queue, from.queue_type, id, one.text)
      elseif place == key and name == member then
        change(id)
        if from.pause then
          local m = more_of(r)
          m.hb, m.hk = 'pause', from.pause
        else
          hand_out(id, r, queue)
        end
      else
        -- The record disagrees with this entry: remove the entry.
        remove(key, member)
        if from.pause then
          passed = passed - 1
        else
          wanted = wanted + 1
          if from.room then from.room.left = from.room.left + 1 end
        end
      end
    end
  until #chosen == 0
  -- The same claim, made again, has all its room again.
  if cleared >= MAX_CLEARED then more = 1 end
  for _, one in ipairs(lanes) do
    if one.member then more = 1 end
  end
end
end

for i = first_queue, #ARGV, 3 do
  local queue, wanted = ARGV[i], tonumber(ARGV[i + 1])
  local served = wanted > 0 and rooms and serve_expired(queue, tonumber(ARGV[i + 2])) or 0
  if wanted > served then
    serve(queue, wanted - served)
  elseif served > 0 then
    -- The rest of this queue was not searched.
    more = 1
  end
  local first = call('ZRANGE', DELAYED .. queue, 0, 0, 'WITHSCORES')
  if first[2] then
    local due = tonumber(first[2])
    if due <= now then more = 1 elseif not next_due or due < next_due then next_due = due end
  end
end

local inputs = many(INPUTS, ids)
for i = 1, #ids do items[whole[i]][3] = inputs[i] end
write_light_claims()
settle_groups()
settle_records()
for _, queue in ipairs(piled) do
  if #expired_of(queue, 1) > 0 then more = 1 end
end
for key, named in pairs(used) do
  if call('EXISTS', key) == 0 then call('ZREM', PRIORITIES .. named[1], named[2]) end
end
publish_all()
local reply = { now, more, next_due, has_expired and 1 or 0, removed_items, unreadable, crashed }
for i = 1, #items do reply[7 + i] = items[i] end
return reply

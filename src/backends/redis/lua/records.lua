-- records.lua: items, the set that each of them is in, and the lists that people read.
--
-- An item is one packed array in the hash `items`, and its input as text in the hash `inputs`. A script loads what it
-- needs in one call, changes it, and `settle_records` writes it back: the set of an item (ready, delayed, leased, held, ended)
-- and its lists follow from the record, so they cannot disagree with it. An item to which nothing has happened yet beside being
-- enqueued, claimed and completed is a light one (see below): it is read as such a record, and becomes one when it is changed.
local STATE, QUEUE, TYPE, GROUP, PRIORITY, DUE, ARRIVAL, WORD, MORE, HEAD = 1, 2, 3, 4, 5, 6, 7, 8, 9, 10
-- STATE     p pending, r running, c completed, d dead
-- GROUP     false: the id of the item
-- DUE       false: never by itself
-- WORD      the list it is filed in: w waiting, s scheduled, r retrying, b blocked, a active, c completed, d dead, k cancelled
-- MORE      false, or what only some items have:
--   at attempt (if not 1), sa startAt, qa queueAt and rd redrives (after a redrive); hb hk hold; me gate met;
--   tk token, un until, wk worker, fe fence, dl deliveries, ra runAt, rn running (by the last heartbeat), la lapses, cr crashes, sb settledToken, ca cancel reason;
--   en ending, cl class, ea endAt, ku kept until; wt waiter, ws watchers, tg tags, na attempts recorded;
--   dd deadline;
--   fp fingerprint, fa endedAt and fc class of the last run, if that failed
-- HEAD      the rest of its envelope, as JSON. Without one, the input is the whole envelope: a plain message that split_envelope
--           could not split, or an item that older code wrote.
local ITEMS, INPUTS, RESULTS, ERRORS = prefix .. ':items', prefix .. ':inputs', prefix .. ':results', prefix .. ':errors'
local ATTEMPTS, PROGRESS = prefix .. ':attempts', prefix .. ':progress'
local READY, PRIORITIES, DELAYED = prefix .. ':ready:', prefix .. ':priorities:', prefix .. ':delayed:'
-- Waiting items that have a deadline, by deadline.
local EXPIRING = prefix .. ':expiring:'
local LEASES, HELD, RETENTION = prefix .. ':leases:', prefix .. ':held:', prefix .. ':retention'
local INDEX, COUNTS, SEQ = prefix .. ':index:', prefix .. ':counts', prefix .. ':seq'
local PAUSES, RESUMING = prefix .. ':pauses', prefix .. ':resuming'
-- Dead and retrying items that failed alike: `failed:<letter>:<group>` has the time of each failure, `failures` their number.
local FAILED, FAILURES = prefix .. ':failed:', prefix .. ':failures'
-- Lists are in the order of time: milliseconds, and one of this many places within each. A number is exact until 2109.
local PLACES = 2048

local records, before, touched = {}, {}, {}
-- Set by gates.lua and groups.lua, where a script has them.
local drop_gate, forget_group_of, file_group_of

-- The counter of arrivals, read and written once.
local seq, seq_read
local function next_seq()
  if not seq then
    seq = tonumber(call('GET', SEQ) or '0')
    seq_read = seq
  end
  seq = seq + 1
  return seq
end

local pauses
local function paused(key)
  if not pauses then
    pauses = {}
    for _, name in ipairs(call('HKEYS', PAUSES)) do pauses[name] = true end
  end
  return pauses[key]
end

local queue_types = {}
local function queue_type_of(queue, kind)
  local kinds = queue_types[queue]
  if not kinds then
    kinds = {}
    queue_types[queue] = kinds
  end
  local queue_type = kinds[kind]
  if not queue_type then
    queue_type = #queue .. ':' .. queue .. kind
    kinds[kind] = queue_type
  end
  return queue_type
end

local function traits_of(more)
  if not more or not (more.tg or more.cl or more.fp) then return nil end
  local traits = {}
  if more.tg then for _, tag in ipairs(more.tg) do traits[#traits + 1] = 't:' .. tag end end
  if more.cl then traits[#traits + 1] = 'c:' .. more.cl end
  if more.fp then traits[#traits + 1] = 'f:' .. more.fp end
  return traits
end

local function word_of(r)
  local state, more = r[STATE], r[MORE]
  if state == 'p' then
    if more and more.hb then return 'b' end
    if not r[DUE] or r[DUE] > now then return more and more.at and more.at > 1 and 'r' or 's' end
    return 'w'
  end
  if state == 'r' then return 'a' end
  if state == 'c' then return 'c' end
  return more.en == 'cancelled' and 'k' or 'd'
end

-- The sorted set that an item is in, its score, and its name there.
local function place_of(id, r)
  local state = r[STATE]
  if state == 'p' then
    if r[WORD] == 'w' then
      -- Arrival breaks ties between equal due times: members with one score are in the order of their text.
      return READY .. r[PRIORITY] .. ':' .. queue_type_of(r[QUEUE], r[TYPE]), r[DUE], string.format('%012d', r[ARRIVAL]) .. id
    end
    local more = r[MORE]
    if more and more.hb == 'pause' then return HELD .. more.hk, r[DUE] or 0, id end
    if r[DUE] then return DELAYED .. r[QUEUE], r[DUE], id end
    return nil
  end
  if state == 'r' then
    -- Without an end it is no lease, and no claim would find it.
    if not (r[MORE] and r[MORE].un) then return nil end
    return LEASES .. r[QUEUE], r[MORE].un, id
  end
  if r[MORE].ku then return RETENTION, r[MORE].ku, 'i' .. id end
  return nil
end

-- Its deadline, and its name in the set of expiring items; nil: it has no deadline, or does not wait to be claimed.
local function expiry_of(id, r)
  local deadline = r[WORD] == 'w' and r[MORE] and r[MORE].dd
  if not deadline then return nil end
  return deadline, string.format('%012d', r[ARRIVAL]) .. id
end

local function more_of(r)
  local more = r[MORE]
  if not more then
    more = {}
    r[MORE] = more
  end
  return more
end

-- The instant that orders its list, where the record has it: the due time of a waiting item, the end of an ended one.
-- Others are ordered by the time they entered their list.
local function instant_of(r)
  local word = r[WORD]
  if word == 'w' then return r[DUE] end
  if word == 'c' or word == 'd' or word == 'k' then return r[MORE].ea end
  return false
end

-- The group of those that failed alike, and the time of this failure; nil for an item that is neither dead nor retrying, or never
-- failed.
local function failure_of(r)
  local word, more = r[WORD], r[MORE]
  if not more or not more.fp or (word ~= 'd' and word ~= 'r') then return nil end
  local class, at
  if word == 'd' then class, at = more.cl or '', more.ea else class, at = more.fc or '', more.fa or 0 end
  return #class .. ':' .. class .. #r[TYPE] .. ':' .. r[TYPE] .. more.fp, at
end

local function standing(id, r)
  local key, score, member = place_of(id, r)
  local group, at = nil, nil
  if r[MORE] and r[MORE].fp then group, at = failure_of(r) end
  return { key, score, member, r[WORD], queue_type_of(r[QUEUE], r[TYPE]), traits_of(r[MORE]), instant_of(r), group, at, false, r[QUEUE], expiry_of(id, r) }
end

local deltas = {}
local function count(word, queue_type, by)
  local field = word .. queue_type
  deltas[field] = (deltas[field] or 0) + by
end

-- ── light items: what most of them are for all their life. Scripts of their own write and end them as text (light-*.lua) ──
--
-- A light item is alone in its group and has no tags, deadline or hold. `items` has its text:
--   'h', arrival (12 digits), due (13), queue, type, priority, queueAt and startAt (base 36; '' the same), the rest of its envelope
--   (JSON, or the five numbers of its retry policy), input
-- with a separator between those without a fixed length. A long input is in `inputs`, and '' here: lists do not load it. It is
--   ended   if the hash `ends` has its end: endAt (13), runAt (13), keep, token, ending, line of its run, result;
--   leased  if its score in the list of active items is the number of a claim. The hash `claims` has, for each of these, the time of
--           the claim (13), its queue type, key and worker, and the sorted set `claim-ends` has when it lapses. The token of each
--           lease is that number and that key, its fence the number;
--   waiting otherwise.
-- Whatever else happens to it (a retry, a heartbeat, a watcher, a gate over it, a second item in its group) makes it a whole
-- record first. So what is still light has nothing beside it that its end would have to look at.
local ENDS, CLAIMS, CLAIM_ENDS, KEPT = prefix .. ':ends', prefix .. ':claims', prefix .. ':claim-ends:', prefix .. ':kept:'
local LIGHT = 104
-- By id, those that are light in the storage: body, waiter or nil, no of the claim or nil; of ended ones: line, result.
local lights = {}
-- The claims that lose an item: their queue and queue type, by number.
local left_claims = {}
local split_claim, load_texts
do
local LIGHT_TEXT = '^(%d%d%d%d%d%d%d%d%d%d%d%d)(%d%d%d%d%d%d%d%d%d%d%d%d%d)' .. string.rep('([^\30]*)\30', 6) .. '(.*)$'
local END_TEXT = '^(%d%d%d%d%d%d%d%d%d%d%d%d%d)(%d%d%d%d%d%d%d%d%d%d%d%d%d)' .. string.rep('([^\30]*)\30', 4) .. '(.*)$'
local claims = {}

function split_claim(text)
  -- The time of the claim, queue type, key, worker.
  return string.match(text, '^(%d%d%d%d%d%d%d%d%d%d%d%d%d)([^\30]*)\30([^\30]*)\30(.*)$')
end

local function claim_of(no, queue)
  local claim = claims[no]
  if claim == nil then
    local text = call('HGET', CLAIMS, no)
    claim = false
    if text then
      local from, _, key, worker = split_claim(text)
      claim = { from = tonumber(from), worker = worker, key = key, un = tonumber(call('ZSCORE', CLAIM_ENDS .. queue, no) or nil) }
    end
    claims[no] = claim
  end
  return claim
end

local function read_light(id, text, ended)
  local arrival, due, queue, kind, priority, queue_at, start_at, rest, body = string.match(text, LIGHT_TEXT, 2)
  if string.byte(rest) ~= 123 then
    local policy = '{"v":1,"retry":{"attempts":%1,"base":%2,"factor":%3,"max":%4,"jitter":%5}}'
    rest = string.gsub(rest, '^([^,]*),([^,]*),([^,]*),([^,]*),([^,]*)$', policy)
  end
  local queued = string.format('%.0f', tonumber(queue_at, 36))
  local head = '{"queueAt":' .. queued .. ',"startAt":' .. (start_at == '' and queued or string.format('%.0f', tonumber(start_at, 36))) ..
    (priority ~= '0' and ',"priority":' .. priority or '') .. (rest == '{}' and '}' or ',' .. string.sub(rest, 2))
  local waiter = string.find(rest, '"waiter":', 1, true) and cjson.decode(rest).waiter or nil
  local state, word, more, light = 'p', 'w', waiter and { wt = waiter }, { body = body, waiter = waiter }
  if ended then
    local at, run_at, keep, token, ending, line, result = string.match(ended, END_TEXT)
    at = tonumber(at)
    state, word = 'c', 'c'
    more = { en = ending, ea = at, ku = keep ~= '' and at + tonumber(keep) or nil, sb = token, ra = tonumber(run_at), dl = 1, wt = waiter }
    more.fe, more.na = tonumber(string.match(token, '^%d+')), line ~= '' and 1 or nil
    light.is_ended, light.line, light.result = true, line ~= '' and line or nil, result ~= '' and string.sub(result, 2) or nil
  else
    local no = call('ZSCORE', INDEX .. 'a:' .. queue_type_of(queue, kind), id)
    if no then
      no = string.format('%.0f', tonumber(no))
      local claim = claim_of(no, queue) or {}
      state, word, light.no = 'r', 'a', no
      more = { tk = no .. '.' .. (claim.key or ''), un = claim.un, wk = claim.worker, ra = claim.from, fe = tonumber(no), dl = 1, wt = waiter }
    end
  end
  lights[id] = light
  records[id] = { state, queue, kind, false, tonumber(priority), tonumber(due), tonumber(arrival), word, more or false, head }
end

-- Reads texts of `items` as records.
function load_texts(ids, texts)
  local light = {}
  for i = 1, #ids do
    if texts[i] then
      if string.byte(texts[i]) == LIGHT then light[#light + 1] = i else records[ids[i]] = cmsgpack.unpack(texts[i]) end
    end
  end
  if #light == 0 then return end
  local names = {}
  for i = 1, #light do names[i] = ids[light[i]] end
  local ends = many(ENDS, names)
  for i = 1, #light do read_light(names[i], texts[light[i]], ends[i]) end
end
end

-- A light item is going to be changed: its record takes the place of its text.
local function make_whole(id)
  local light, r = lights[id], records[id]
  -- What its sets and lists have of it is not what a record has there.
  before[id][10] = true
  file_group_of(id)
  lights[id] = nil
  if light.body ~= '' then put(INPUTS, id, light.body) end
  if light.is_ended then put(ENDS, id, false) end
  if light.line then put(ATTEMPTS, id, light.line) end
  if light.result then put(RESULTS, id, light.result) end
  if light.no then left_claims[light.no] = { r[QUEUE], queue_type_of(r[QUEUE], r[TYPE]) } end
end

-- Removes a light item that has ended.
local function drop_ended(id, queue_type)
  remove(INDEX .. 'c:' .. queue_type, id)
  count('c', queue_type, -1)
  put(ITEMS, id, false)
  put(ENDS, id, false)
  put(INPUTS, id, false)
  lights[id], records[id] = nil, false
end

-- Removes claims that have lost their last item.
local function close_claims()
  for no, of in pairs(left_claims) do
    if call('ZCOUNT', INDEX .. 'a:' .. of[2], no, no) == 0 then
      call('HDEL', CLAIMS, no)
      call('ZREM', CLAIM_ENDS .. of[1], no)
    end
  end
  left_claims = {}
end

-- Announces a change of the record. Every change begins with it.
local function change(id)
  local r = records[id]
  if before[id] == nil then
    before[id] = r and standing(id, r) or false
    touched[#touched + 1] = id
    if lights[id] then make_whole(id) end
  end
  return r
end

-- As `change`, and every entry of the item is written again, even one that seems to exist: it may have been lost.
local function refile(id)
  local r = change(id)
  if before[id] then before[id][10] = true end
  return r
end

-- Loads many records in one call.
local function fetch(ids)
  local missing = {}
  for i = 1, #ids do
    local id = ids[i]
    if records[id] == nil then
      records[id] = false
      missing[#missing + 1] = id
    end
  end
  load_texts(missing, many(ITEMS, missing))
end

-- Removes everything of an item.
local function discard(id)
  local r = change(id)
  if r and forget_group_of then forget_group_of(id, r) end
  records[id] = false
  put(INPUTS, id, false)
  put(RESULTS, id, false)
  put(ERRORS, id, false)
  put(ATTEMPTS, id, false)
  put(PROGRESS, id, false)
end

-- The record as of now: an expired item is removed, and a hold ends with its time or its pause.
local function item(id)
  if records[id] == nil then fetch({ id }) end
  local r = records[id]
  if not r then return nil end
  local more = r[MORE]
  if more then
    if more.ku and more.ku <= now then
      if lights[id] then drop_ended(id, queue_type_of(r[QUEUE], r[TYPE])) else discard(id) end
      return nil
    end
    if more.hb and r[STATE] == 'p' then
      if more.hb == 'pause' then
        if not paused(more.hk) then
          change(id)
          more.hb, more.hk = nil, nil
        end
      elseif r[DUE] and r[DUE] <= now then
        change(id)
        if more.hb == 'gate' and drop_gate then drop_gate(more.hk) end
        more.hb, more.hk = nil, nil
      end
    end
  end
  return r
end

-- The lists that have the items of a queue and type which are filed under a letter.
local function lists_of(word, queue_type)
  if word ~= 'w' then return { INDEX .. word .. ':' .. queue_type } end
  local keys = {}
  for i, name in ipairs(call('ZRANGE', PRIORITIES .. queue_type, 0, -1)) do keys[i] = READY .. name .. ':' .. queue_type end
  return keys
end

local settle_records
do
-- Moves an item between the lists that people read.
local function relist(id, was, r)
  local word, queue_type, traits, score, instant = nil, nil, nil, nil, nil
  if r then
    word, queue_type, traits, instant = r[WORD], queue_type_of(r[QUEUE], r[TYPE]), traits_of(r[MORE]), instant_of(r)
    score = (instant or now) * PLACES + r[ARRIVAL] % PLACES
    -- Odd ones are the numbers of claims.
    if word == 'a' then score = score - score % 2 end
  end
  local old_word, old_queue_type, old_traits = was and was[4], was and was[5], was and was[6]
  local is_same = word == old_word and queue_type == old_queue_type
  local is_kept = is_same and instant == was[7] and not was[10]
  -- Items that wait are listed by their ready sets.
  if not is_same and old_word then
    if old_word ~= 'w' then remove(INDEX .. old_word .. ':' .. old_queue_type, id) end
    count(old_word, old_queue_type, -1)
  end
  if word and not is_kept then
    if word ~= 'w' then add(INDEX .. word .. ':' .. queue_type, score, id) end
    if not is_same then count(word, queue_type, 1) end
  end
  if not traits and not old_traits then return end
  if is_kept and traits and old_traits and #traits == #old_traits then
    local is_equal = true
    for i = 1, #traits do is_equal = is_equal and traits[i] == old_traits[i] end
    if is_equal then return end
  end
  local stays = {}
  if traits then
    for i = 1, #traits do stays[word .. ':' .. traits[i]] = true end
  end
  if old_traits then
    for i = 1, #old_traits do
      local key = old_word .. ':' .. old_traits[i]
      if stays[key] == nil then remove(INDEX .. key, id) else stays[key] = not is_kept end
    end
  end
  for key, is_new in pairs(stays) do
    if is_new then add(INDEX .. key, score, id) end
  end
end

-- Moves an item between groups of failures.
local alike = {}
local function regroup(id, was, r)
  local group, at = nil, nil
  if r then group, at = failure_of(r) end
  local old_group = was and was[8]
  if not group and not old_group then return end
  local is_same = group == old_group and r[WORD] == was[4]
  if is_same and at == was[9] and not was[10] then return end
  if old_group and not is_same then
    remove(FAILED .. was[4] .. ':' .. old_group, id)
    alike[old_group] = true
  end
  if group then
    add(FAILED .. r[WORD] .. ':' .. group, at, id)
    alike[group] = true
  end
end

-- Adds an item to the set of expiring items, or removes it.
local function reexpire(id, was, r)
  local deadline, member = nil, nil
  if r then deadline, member = expiry_of(id, r) end
  local old_member = was and was[13]
  if not member and not old_member then return end
  local is_same = old_member == member and was[11] == r[QUEUE]
  if old_member and not is_same then remove(EXPIRING .. was[11], old_member) end
  if member and not (is_same and was[12] == deadline and not was[10]) then add(EXPIRING .. r[QUEUE], deadline, member) end
end

-- Writes back all changes. Later changes are written by the next call.
function settle_records()
  for i = 1, #touched do
    local id = touched[i]
    local r, was = records[id], before[id]
    local key, score, member
    if r then
      r[WORD] = word_of(r)
      if r[MORE] and next(r[MORE]) == nil then r[MORE] = false end
      key, score, member = place_of(id, r)
      put(ITEMS, id, cmsgpack.pack(r))
      if r[WORD] == 'w' and not added[key] then
        call('ZADD', PRIORITIES .. queue_type_of(r[QUEUE], r[TYPE]), -r[PRIORITY], tostring(r[PRIORITY]))
      end
    elseif was then
      put(ITEMS, id, false)
    end
    local was_key = was and was[1]
    if was_key ~= key or (key and was[3] ~= member) then
      if was_key then remove(was_key, was[3]) end
      if key then add(key, score, member) end
    elseif key and (was[2] ~= score or was[10]) then
      add(key, score, member)
    end
    reexpire(id, was, r)
    relist(id, was, r)
    if (was and was[8]) or (r and r[MORE] and r[MORE].fp) then regroup(id, was, r) end
  end
  before, touched = {}, {}
  write_gathered()
  close_claims()
  for field, by in pairs(deltas) do
    if by ~= 0 and call('HINCRBY', COUNTS, field, by) == 0 then call('HDEL', COUNTS, field) end
  end
  deltas = {}
  -- Sizes are queried, not counted, so they are right whatever happened before.
  for group in pairs(alike) do
    local size = call('ZCARD', FAILED .. 'd:' .. group) + call('ZCARD', FAILED .. 'r:' .. group)
    if size == 0 then call('ZREM', FAILURES, group) else call('ZADD', FAILURES, size, group) end
  end
  alike = {}
  if seq and seq ~= seq_read then
    call('SET', SEQ, seq)
    seq_read = seq
  end
end
end

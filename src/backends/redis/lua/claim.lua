-- claim.lua: bring back lapsed leases and due items, then lease what is ready.
--
-- ARGV  now, token (each lease has it with its number in the reply, from 0), lease (ms), worker, start_now (how many of the items start at once),
--       step (how many lapsed, due, expired or foreign ones are looked at most), and queue, max for each queue in order
-- REPLY now, more, next due or false, expired ones are left, how many were removed, unreadable {queue, body...},
--       types of the runs that were cut off {...}, items...
--       item: id, queue, body, head or false, type, group or false, attempt, startAt, queueAt, redrives, fence, lapses, crashes,
--       deliveries, met, started, cancel reason
local token, lease, worker = ARGV[2], tonumber(ARGV[3]), ARGV[4]
local start_now, step = tonumber(ARGV[5]), tonumber(ARGV[6])
local FIRST_QUEUE = 7
-- So many priorities are read at a time.
local PAGE = 50
local until_at = now + lease
local more, next_due, unreadable = 0, false, {}

-- The server takes NaN and Infinity for JSON. A set that is asked to sort by one raises in the midst of the batch, and nobody else
-- could read the body, so it is none of ours.
local function is_sound(value)
  if type(value) == 'number' then return value == value and value ~= math.huge and value ~= -math.huge end
  if type(value) ~= 'table' then return true end
  for _, part in pairs(value) do
    if not is_sound(part) then return false end
  end
  return true
end

-- Whatever was pushed as text becomes an item if it is an envelope; otherwise it is reported, and gone.
local function adopt(queue, max)
  if call('EXISTS', MPRIORITIES .. queue, MLATER .. queue, MLEASES .. queue) == 0 then return end
  free_messages(queue, max)
  local taken = take_messages(queue, max)
  if #taken == max then more = 1 end
  for _, no in ipairs(taken) do
    local m, body = load_message(no), call('HGET', TEXTS, no)
    drop_message(no, m)
    local is_json, e = pcall(cjson.decode, body)
    local is_envelope = is_json and type(e) == 'table' and type(e.id) == 'string' and type(e.type) == 'string' and
      type(e.groupId) == 'string' and type(e.input) == 'string' and is_sound(e)
    if not is_envelope then
      unreadable[#unreadable + 1], unreadable[#unreadable + 2] = queue, body
    elseif not item(e.id) then
      change(e.id)
      local extra = {}
      if type(e.attempt) == 'number' and e.attempt > 1 then extra.at = math.floor(e.attempt) end
      if type(e.waiter) == 'string' then extra.wt = e.waiter end
      if type(e.tags) == 'table' and #e.tags > 0 then
        extra.tg = {}
        for _, tag in ipairs(e.tags) do
          if type(tag) == 'string' then extra.tg[#extra.tg + 1] = tag end
        end
      end
      local priority = type(e.priority) == 'number' and e.priority or m[2]
      records[e.id] = { 'p', queue, e.type, e.groupId ~= e.id and e.groupId or false, priority, m[3], next_seq(), false, extra }
      put(BODIES, e.id, body)
    end
  end
end

even_when_full()
local has_expired = sweep(step)
if free_resumed(step) then more = 1 end
for i = FIRST_QUEUE, #ARGV, 2 do
  local queue = ARGV[i]
  if reclaim(queue, step) then more = 1 end
  -- No fewer than asked for, so that one call can hand out that many.
  if promote(queue, math.max(step, tonumber(ARGV[i + 1]))) then more = 1 end
  adopt(queue, step)
end
settle_records()

local items, ids = {}, {}

local function hand_out(id, r, queue)
  local m = more_of(r)
  local is_started = #items < start_now
  r[STATE] = 'r'
  -- A lease is worth nothing for another item, of the same claim neither.
  m.tk, m.un, m.wk, m.hb, m.hk = token .. '.' .. #items, until_at, worker, nil, nil
  m.fe, m.dl = (m.fe or 0) + 1, (m.dl or 0) + 1
  m.ra = is_started and now or nil
  local met = false
  if m.me ~= nil then met = m.me and '1' or '0' end
  ids[#ids + 1] = id
  items[#items + 1] = {
    id, queue, false, r[HEAD] or false, r[TYPE], r[GROUP], m.at or false, m.sa or false, m.qa or false, m.rd or false, m.fe, m.la or 0, m.cr or 0, m.dl, met,
    is_started and 1 or 0, m.ca or false,
  }
end

for i = FIRST_QUEUE, #ARGV, 2 do
  local queue, wanted, passed = ARGV[i], tonumber(ARGV[i + 1]), 0
  local rank, beyond, page = 0, 0, nil
  repeat
    page = call('ZRANGE', PRIORITIES .. queue, rank, rank + PAGE - 1)
    for _, priority in ipairs(page) do
      local key = READY .. priority .. ':' .. queue
      while wanted > 0 and passed < step do
        local popped = call('ZPOPMIN', key, wanted)
        if #popped == 0 then break end
        local names = {}
        for j = 1, #popped, 2 do names[#names + 1] = string.sub(popped[j], 13) end
        fetch(names)
        for j = 1, #names do
          local id = names[j]
          local r = records[id]
          if r and r[STATE] == 'p' then
            change(id)
            -- It has just been taken out of there.
            before[id][1] = nil
            local pause = paused('queue:' .. queue) and 'queue:' .. queue or paused('type:' .. r[TYPE]) and 'type:' .. r[TYPE]
            if pause then
              local m = more_of(r)
              m.hb, m.hk = 'pause', pause
              passed = passed + 1
            else
              hand_out(id, r, queue)
              wanted = wanted - 1
            end
          end
        end
      end
      if call('EXISTS', key) == 0 then
        call('ZREM', PRIORITIES .. queue, priority)
      else
        rank = rank + 1
        more = 1
      end
      if wanted <= 0 or passed >= step then
        -- There is more as soon as one is left; and lists that were emptied by others are not all for this call to clear away.
        beyond = beyond + 1
        if beyond >= PAGE then more = 1 end
        if more == 1 then
          page = {}
          break
        end
      end
    end
  until #page < PAGE
  local first = call('ZRANGE', LATER .. queue, 0, 0, 'WITHSCORES')
  if first[2] then
    local due = tonumber(first[2])
    if due <= now then more = 1 elseif not next_due or due < next_due then next_due = due end
  end
end

local bodies = many(BODIES, ids)
for i = 1, #items do items[i][3] = bodies[i] end
settle_groups()
settle_records()
publish_all()
local reply = { now, more, next_due, has_expired and 1 or 0, removed_items, unreadable, crashed }
for i = 1, #items do reply[7 + i] = items[i] end
return reply

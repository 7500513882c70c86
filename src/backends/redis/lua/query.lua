-- query.lua: finds the items of a query, page by page. Runs after promote.lua.
--
-- ARGV  now, limit, scan (how many other entries may be read), cursor (or ''), words (letters of the lists),
--       trait ('' or t:tag, c:class, f:fingerprint: the index that narrows most), then filters, '' for none:
--       queue, type, group, tag, class, fingerprint, before, after; each with '=' before it
-- A cursor is '<score>:<name>' of the last entry that was read. The name of an item that waits is that in its ready set.
local limit, scan = tonumber(ARGV[2]), tonumber(ARGV[3])
local words, trait = ARGV[5], ARGV[6]
local function filter(i) return ARGV[i] ~= '' and string.sub(ARGV[i], 2) or nil end
local of_queue, of_type, of_group, of_tag = filter(7), filter(8), filter(9), filter(10)
local of_class, of_fingerprint, before_at = filter(11), filter(12), tonumber(filter(13) or '')
local after_at = tonumber(filter(14) or '')
-- How many records are loaded at a time.
local SLICE = 200

local cursor_score, cursor_id = string.match(ARGV[4], '^(%d+):(.*)$')
cursor_score = tonumber(cursor_score)

-- As the server orders the members of one score. Lua's own comparison follows the locale.
local function follows(a, b)
  for i = 1, math.min(#a, #b) do
    local x, y = string.byte(a, i), string.byte(b, i)
    if x ~= y then return x > y end
  end
  return #a > #b
end

-- The newest come first.
local function comes_first(a, b)
  if a[2] ~= b[2] then return a[2] > b[2] end
  return follows(a[1], b[1])
end

-- Lists whose scores are due times, and whose members begin with the arrival.
local is_ready = {}

-- The lists that hold everything the query can find.
local function lists()
  local keys = {}
  if trait ~= '' then
    for i = 1, #words do keys[i] = INDEX .. string.sub(words, i, i) .. ':' .. trait end
    return keys
  end
  for _, field in ipairs(call('HKEYS', COUNTS)) do
    local word, size, rest = string.match(field, '^(.)(%d+):(.*)$')
    local queue, kind = string.sub(rest, 1, tonumber(size)), string.sub(rest, tonumber(size) + 1)
    if string.find(words, word, 1, true) and (not of_queue or queue == of_queue) and (not of_type or kind == of_type) then
      for _, key in ipairs(lists_of(word, string.sub(field, 2))) do
        keys[#keys + 1] = key
        is_ready[key] = word == 'w'
      end
    end
  end
  return keys
end

-- Lists of ended items are in the order of their ends: earlier ones are not read.
local lowest = '-inf'
if after_at and not string.find(words, '[^cdk]') then lowest = string.format('%.0f', math.ceil(after_at) * PLACES) end

-- The entries of a list behind the cursor, at least `most` of them if there are as many; and whether there may be more.
local function entries_of(key, most)
  local found, offset, some = {}, 0, nil
  local places, begin = is_ready[key] and PLACES or 1, is_ready[key] and 13 or 1
  local from = cursor_score and string.format('%.0f', math.floor(cursor_score / places)) or '+inf'
  repeat
    some = call('ZREVRANGEBYSCORE', key, from, lowest, 'WITHSCORES', 'LIMIT', offset, most)
    for i = 1, #some, 2 do
      local entry = { some[i], tonumber(some[i + 1]) * places, string.sub(some[i], begin) }
      if entry[2] ~= cursor_score or follows(cursor_id, entry[1]) then found[#found + 1] = entry end
    end
    offset = offset + most
  until #some < 2 * most or #found >= most
  return found, #some == 2 * most
end

local function has(list, wanted)
  if list then for _, one in ipairs(list) do if one == wanted then return true end end end
  return false
end

-- When it ended, or else was enqueued.
local function since(id, r)
  local at = r[MORE] and (r[MORE].ea or r[MORE].qa)
  if at then return at end
  local is_json, e = pcall(cjson.decode, r[HEAD] or call('HGET', INPUTS, id) or '')
  return is_json and type(e) == 'table' and tonumber(e.queueAt) or 0
end

local function fits(id, r)
  local m = r[MORE] or {}
  return (not of_queue or r[QUEUE] == of_queue) and (not of_type or r[TYPE] == of_type) and
    (not of_group or (r[GROUP] or id) == of_group) and (not of_tag or has(m.tg, of_tag)) and
    (not of_class or m.cl == of_class) and (not of_fingerprint or m.fp == of_fingerprint) and
    (not before_at or since(id, r) < before_at) and (not after_at or since(id, r) >= after_at)
end

-- The ids of a page, and the cursor of the next one or false.
local function find_page()
  local keys = lists()
  -- Where every entry fits, one more than the page is enough of each list; otherwise the lists share the number of entries that may be read.
  local is_plain = trait == '' and not (of_group or of_tag or of_class or of_fingerprint or before_at or after_at)
  local most = limit + (is_plain and 1 or math.ceil(scan / math.max(1, #keys)))
  -- Behind `floor` some list has entries that were not read, so nothing there is in its place yet.
  local entries, floor = {}, nil
  for _, key in ipairs(keys) do
    local found, has_more = entries_of(key, most)
    for i = 1, #found do entries[#entries + 1] = found[i] end
    if has_more and (not floor or comes_first(found[#found], floor)) then floor = found[#found] end
  end
  -- One list is in order already, and sorting is most of the work.
  if #keys > 1 then table.sort(entries, comes_first) end

  local chosen, is_chosen, scanned, last, next_cursor = {}, {}, 0, nil, nil
  for i = 1, #entries do
    local entry = entries[i]
    if #chosen >= limit or scanned >= scan or (floor and comes_first(floor, entry)) then
      next_cursor = last
      break
    end
    if (i - 1) % SLICE == 0 then
      local ids = {}
      for j = i, math.min(#entries, i + SLICE - 1, i + limit - #chosen + scan - scanned) do ids[#ids + 1] = entries[j][3] end
      fetch(ids)
    end
    local id = entry[3]
    last = entry
    local r = item(id)
    -- An item that is in two lists at the same time is shown once.
    if r and not is_chosen[id] and fits(id, r) then
      chosen[#chosen + 1] = id
      is_chosen[id] = true
    else
      scanned = scanned + 1
    end
  end
  if not next_cursor and floor then next_cursor = last end
  return chosen, next_cursor and string.format('%.0f', next_cursor[2]) .. ':' .. next_cursor[1] or false
end

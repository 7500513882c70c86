-- apply.lua: what became of messages, many in one call. Each is fenced: only its present holder changes anything. What is the same for
-- many of them is one command for all.
-- ARGV … then groups: what, how many ids, three words that hold for each of them, the ids
--   start    starts
--   extend
--   ack      has a note (1 or '')
--   nak      delay in ms, starts, note
--   term     dead-letter stream ('' = none), JSON list of fields to add to the letter, has a note
--   release
-- REPLY what was not done, in turn: its place among all ids (from 1), and why: 0 held by another consumer, 2 not in the list of the
--       group (it has been settled), or the text of an error
local replies = {}

-- The words of a command on these entries: what comes before their ids, the ids, what comes behind.
local function words_of(before, ids, behind)
  for _, id in ipairs(ids) do before[#before + 1] = id end
  for _, word in ipairs(behind) do before[#before + 1] = word end
  return unpack(before)
end

-- Keeps them as of now.
local function hold(ids, starts)
  local counted = starts and { 'RETRYCOUNT', starts, 'JUSTID' } or { 'JUSTID' }
  redis.call('XCLAIM', words_of({ stream, group, me, 0 }, ids, counted))
end

local function put_back(ids, dueMs)
  local words = { due }
  for _, id in ipairs(ids) do
    words[#words + 1] = dueMs
    words[#words + 1] = member(id)
  end
  redis.call('ZADD', unpack(words))
end

local function settled(ids, hasNote)
  redis.call('XACK', words_of({ stream, group }, ids, {}))
  if hasNote ~= '' then redis.call('HDEL', notes, unpack(ids)) end
end

-- Each answers with the text of an error for all of its ids, or with nothing.
local apply = {
  start = function(ids, starts) hold(ids, starts) end,
  extend = function(ids) hold(ids) end,
  ack = settled,
  nak = function(ids, delayMs, starts, note)
    hold(ids, starts)
    put_back(ids, nowMs() + delayMs)
    if note == '' then
      redis.call('HDEL', notes, unpack(ids))
    else
      for _, id in ipairs(ids) do redis.call('HSET', notes, id, note) end
    end
  end,
  -- One id: no two letters say the same.
  term = function(ids, letters, added, hasNote)
    if letters ~= '' then
      local entry = redis.call('XRANGE', stream, ids[1], ids[1])[1]
      local letter = { letters, '*' }
      for _, word in ipairs(entry and entry[2] or {}) do letter[#letter + 1] = word end
      for _, word in ipairs(cjson.decode(added)) do letter[#letter + 1] = word end
      local kept = redis.pcall('XADD', unpack(letter))
      if type(kept) == 'table' and kept.err then return kept.err end
    end
    settled(ids, hasNote)
  end,
  release = function(ids) put_back(ids, 0) end,
}

local groups, count = {}, 0
local first, last = { ms = math.huge }, { ms = -1 }
local at = 3
while at <= #ARGV do
  local made = { what = ARGV[at], words = { ARGV[at + 2], ARGV[at + 3], ARGV[at + 4] }, ids = {} }
  for i = at + 5, at + 4 + ARGV[at + 1] do
    local id = ARGV[i]
    local text = string.match(id, '^%d+')
    local ms = tonumber(text)
    if ms < first.ms then first = { ms = ms, text = text } end
    if ms > last.ms then last = { ms = ms, text = text } end
    made.ids[#made.ids + 1] = id
  end
  count = count + #made.ids
  at = at + 5 + #made.ids
  groups[#groups + 1] = made
end

-- What this consumer holds between the first and the last of them, with one look in its list. What is not found there, because others lie
-- between them, is looked for by itself.
local mine = {}
if count > 1 then
  for _, row in ipairs(redis.call('XPENDING', stream, group, first.text, last.text, 2 * count, me)) do mine[row[1]] = true end
end

local place = 0
for _, made in ipairs(groups) do
  local held, places = {}, {}
  for _, id in ipairs(made.ids) do
    place = place + 1
    local pending = not mine[id] and pendingOf(id)
    if mine[id] or (pending and pending[2] == me) then
      held[#held + 1] = id
      places[#places + 1] = place
    else
      replies[#replies + 1] = place
      replies[#replies + 1] = pending and 0 or 2
    end
  end
  local failure = #held > 0 and apply[made.what](held, unpack(made.words))
  if failure then
    for _, failed in ipairs(places) do
      replies[#replies + 1] = failed
      replies[#replies + 1] = failure
    end
  elseif made.what == 'ack' or made.what == 'term' then
    for _, id in ipairs(held) do mine[id] = nil end
  end
end
return replies

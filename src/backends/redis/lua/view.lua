-- view.lua: an item as people and waiters see it, as a flat list.

-- A list reads this many bytes of an error: enough for the characters that it shows.
local LISTED_ERROR_BYTES = 2048

local NAMES = { p = 'pending', r = 'running', c = 'completed', d = 'dead' }

-- id, the whole envelope where there is no head, head, type, group, status, queue, ending, class, holdBy, holdKey, dueAt, worker,
-- leaseUntil, runAt, result, error, endAt, progress, lapses, crashes, attempt, startAt, queueAt, redrives, cancel reason,
-- running (1 or 0 while it is leased); false where there is none. Without payloads: neither result nor progress is read, and of
-- an error there is the beginning.
local function views_of(ids, has_payloads)
  local there = {}
  for i = 1, #ids do
    if item(ids[i]) then there[#there + 1] = ids[i] end
  end
  -- Inputs may be large, and views do not show them.
  local headless, bodies = {}, {}
  for i = 1, #there do
    if not records[there[i]][HEAD] then headless[#headless + 1] = there[i] end
  end
  for i, body in ipairs(many(INPUTS, headless)) do bodies[headless[i]] = body end
  local errors = many(ERRORS, there)
  local results, progress = {}, {}
  if has_payloads then results, progress = many(RESULTS, there), many(PROGRESS, there) end
  local views = {}
  for i = 1, #there do
    local r, light = records[there[i]], lights[there[i]]
    if light and has_payloads then results[i] = light.result or false end
    local m = r[MORE] or {}
    local is_pending = r[STATE] == 'p'
    local err = errors[i]
    if err and not has_payloads then err = string.sub(err, 1, LISTED_ERROR_BYTES) end
    views[there[i]] = {
      there[i], bodies[there[i]] or false, r[HEAD] or false, r[TYPE], r[GROUP],
      NAMES[r[STATE]], r[QUEUE], m.en or false, m.cl or false,
      is_pending and m.hb or false, is_pending and m.hk or false, is_pending and r[DUE] or false,
      m.wk or false, m.un or false, m.ra or false, results[i] or false, err, m.ea or false, progress[i] or false,
      m.la or 0, m.cr or 0, m.at or false, m.sa or false, m.qa or false, m.rd or false, m.ca or false,
      m.un and (m.rn and 1 or 0) or false,
    }
  end
  return views
end

-- retention.lua: work that falls due with time, in bounded steps: retention, resumed pauses, due items, lapsed leases.

-- How many ended items were removed, and the types of crashed runs.
local removed_items, crashed = 0, {}

-- Removes expired items and groups. True: there may be more.
local function sweep(step)
  local over = call('ZRANGEBYSCORE', RETENTION, '-inf', now, 'LIMIT', 0, step)
  if #over == 0 then return false end
  local ids, groups = {}, {}
  for i = 1, #over do
    local kind, id = string.sub(over[i], 1, 1), string.sub(over[i], 2)
    if kind == 'i' then ids[#ids + 1] = id else groups[#groups + 1] = id end
  end
  fetch(ids)
  local of_items = {}
  for i = 1, #ids do
    local r = records[ids[i]]
    if r then
      of_items[#of_items + 1] = r[GROUP] or ids[i]
      removed_items = removed_items + 1
    else
      remove(RETENTION, 'i' .. ids[i])
    end
  end
  -- Loading an expired group removes it.
  fetch_groups(groups)
  fetch_groups(of_items)
  for i = 1, #groups do remove(RETENTION, 'g' .. groups[i]) end
  for i = 1, #ids do item(ids[i]) end
  return #over == step
end

-- Makes held items ready again, in their old place, once their pause has ended. True: some are left.
local function free_resumed(step)
  local left = step
  for _, key in ipairs(call('SMEMBERS', RESUMING)) do
    if left <= 0 then return true end
    local ids = call('ZRANGE', HELD .. key, 0, left - 1)
    fetch(ids)
    for i = 1, #ids do
      local r = records[ids[i]]
      if r and r[MORE] and r[MORE].hb == 'pause' then
        change(ids[i])
        r[MORE].hb, r[MORE].hk = nil, nil
        notify_ready(r[QUEUE], r[DUE])
      else
        remove(HELD .. key, ids[i])
      end
    end
    if #ids < left then call('SREM', RESUMING, key) end
    left = left - #ids
  end
  return left <= 0
end

-- Makes due items ready. True: there may be more.
local function promote(queue, step)
  local ids = call('ZRANGEBYSCORE', DELAYED .. queue, '-inf', now, 'LIMIT', 0, step)
  fetch(ids)
  for i = 1, #ids do
    -- A hold ends with its time.
    if item(ids[i]) then change(ids[i]) else remove(DELAYED .. queue, ids[i]) end
  end
  return #ids == step
end

-- Takes back lapsed leases; the item keeps its due time, and hence its place. True: there may be more.
local function reclaim(queue, step)
  local ids = call('ZRANGEBYSCORE', LEASES .. queue, '-inf', now, 'LIMIT', 0, step)
  fetch(ids)
  for i = 1, #ids do
    local r = records[ids[i]]
    if r then
      change(ids[i])
      local more = r[MORE]
      more.la = (more.la or 0) + 1
      if more.rn then
        more.cr = (more.cr or 0) + 1
        crashed[#crashed + 1] = r[TYPE]
      end
      r[STATE] = 'p'
      more.tk, more.un, more.wk, more.ra, more.rn = nil, nil, nil, nil, nil
    else
      remove(LEASES .. queue, ids[i])
    end
  end
  return #ids == step
end

-- upkeep.lua: what falls due with time, in bounded steps: retention, resumed pauses, due items, lapsed leases.

-- How many ended items were removed, and the types of the runs that were cut off.
local removed_items, crashed = 0, {}

-- Removes what has been kept long enough. True: there may be more.
local function sweep(step)
  local over = call('ZRANGEBYSCORE', GONE, '-inf', now, 'LIMIT', 0, step)
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
      remove(GONE, 'i' .. ids[i])
    end
  end
  -- Loading a group whose time is over removes it.
  fetch_groups(groups)
  fetch_groups(of_items)
  for i = 1, #groups do remove(GONE, 'g' .. groups[i]) end
  for i = 1, #ids do item(ids[i]) end
  return #over == step
end

-- Gives what stands aside without a pause its old place. True: some are left.
local function free_resumed(step)
  local left = step
  for _, key in ipairs(call('SMEMBERS', LEAVING)) do
    if left <= 0 then return true end
    local ids = call('ZRANGE', ASIDE .. key, 0, left - 1)
    fetch(ids)
    for i = 1, #ids do
      local r = records[ids[i]]
      if r and r[MORE] and r[MORE].hb == 'pause' then
        change(ids[i])
        r[MORE].hb, r[MORE].hk = nil, nil
        nudge(r[QUEUE], r[DUE])
      else
        remove(ASIDE .. key, ids[i])
      end
    end
    if #ids < left then call('SREM', LEAVING, key) end
    left = left - #ids
  end
  return left <= 0
end

-- Items whose time has come become ready. True: there may be more.
local function promote(queue, step)
  local ids = call('ZRANGEBYSCORE', LATER .. queue, '-inf', now, 'LIMIT', 0, step)
  fetch(ids)
  for i = 1, #ids do
    -- A hold ends with its time.
    if item(ids[i]) then change(ids[i]) else remove(LATER .. queue, ids[i]) end
  end
  return #ids == step
end

-- Leases that ran out are over; the item keeps its due time and hence its place. True: there may be more.
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

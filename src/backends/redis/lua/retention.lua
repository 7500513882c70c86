-- retention.lua: work that falls due with time, in bounded steps: retention, resumed pauses, due items, lapsed leases.

-- How many ended items were removed, and the types of crashed runs.
local removed_items, crashed = 0, {}

local sweep
do
-- Removes light items that were to be kept for `keep`. `kept:<keep>` has, for each script that ended some, the time, and for each of their
-- queue types that and their ids. True: there are more.
local function sweep_kept(keep, step)
  repeat
    local packed = call('LINDEX', KEPT .. keep, 0)
    local entry = packed and cmsgpack.unpack(packed)
    if not entry then
      call('ZREM', RETENTION, 'k' .. keep)
      return false
    end
    local ended_at = entry[1]
    if step <= 0 or ended_at + tonumber(keep) > now then
      call('ZADD', RETENTION, ended_at + tonumber(keep), 'k' .. keep)
      return step <= 0
    end
    call('LPOP', KEPT .. keep)
    for g = 2, #entry do
      local ids = entry[g]
      local queue_type = table.remove(ids, 1)
      local ends = many(ENDS, ids)
      for i = 1, #ids do
        local id = ids[i]
        -- One that was redriven or deleted meanwhile has no such end.
        if ends[i] and tonumber(string.sub(ends[i], 1, 13)) == ended_at and (lights[id] or records[id] == nil) then
          drop_ended(id, queue_type)
          removed_items = removed_items + 1
        end
      end
      step = step - #ids
    end
  until false
end

-- Removes expired items and groups. True: there may be more.
function sweep(step)
  local over = call('ZRANGEBYSCORE', RETENTION, '-inf', now, 'LIMIT', 0, step)
  if #over == 0 then return false end
  local ids, groups, more = {}, {}, #over == step
  for i = 1, #over do
    local kind, id = string.sub(over[i], 1, 1), string.sub(over[i], 2)
    if kind == 'i' then ids[#ids + 1] = id elseif kind == 'g' then groups[#groups + 1] = id elseif sweep_kept(id, step) then more = true end
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
  return more
end
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

local reclaim
do
-- The items of light claims that have lapsed (of at least one of them, if there is any), and the list that each was found in.
local function of_lapsed_claims(queue, step)
  local ids, lists = {}, {}
  for _, no in ipairs(call('ZRANGEBYSCORE', CLAIM_ENDS .. queue, '-inf', now, 'LIMIT', 0, step)) do
    local _, queue_type = split_claim(call('HGET', CLAIMS, no) or '')
    left_claims[no] = { queue, queue_type or '' }
    for _, id in ipairs(queue_type and call('ZRANGEBYSCORE', INDEX .. 'a:' .. queue_type, no, no) or {}) do
      ids[#ids + 1] = id
      lists[id] = INDEX .. 'a:' .. queue_type
    end
    if #ids >= step then break end
  end
  return ids, lists
end

-- Takes back lapsed leases; the item keeps its due time, and hence its place. True: there may be more.
function reclaim(queue, step)
  local ids = call('ZRANGEBYSCORE', LEASES .. queue, '-inf', now, 'LIMIT', 0, step)
  local of_claims, lists = of_lapsed_claims(queue, step)
  for i = 1, #of_claims do ids[#ids + 1] = of_claims[i] end
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
      remove(lists[ids[i]] or LEASES .. queue, ids[i])
    end
  end
  return #ids >= step
end
end

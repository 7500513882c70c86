-- notify.lua: notifications, published when everything is written.

local ready, inboxes = {}, {}

-- Work is ready in this queue, or will be at `due`.
local function notify_ready(queue, due)
  if not due then return end
  if due < now then due = now end
  local known = ready[queue]
  if not known then
    ready[queue] = { due, due }
  else
    if due < known[1] then known[1] = due end
    if due > now and (known[2] <= now or due < known[2]) then known[2] = due end
  end
end

local function inbox_of(name)
  local inbox = inboxes[name]
  if not inbox then
    inbox = { ids = {}, groups = {} }
    inboxes[name] = inbox
  end
  return inbox
end

local function notify_item(name, id)
  local ids = inbox_of(name).ids
  ids[#ids + 1] = id
end

local function notify_group(name, id)
  local groups = inbox_of(name).groups
  groups[#groups + 1] = id
end

local function publish_all()
  local list = {}
  for queue, dues in pairs(ready) do
    list[#list + 1] = { queue, dues[1] > now and dues[1] or 0 }
    -- Work is ready now, and more later: both are published.
    if dues[1] <= now and dues[2] > now then list[#list + 1] = { queue, dues[2] } end
  end
  if #list > 0 then call('PUBLISH', prefix .. ':ready-channel', cjson.encode(list)) end
  for name, inbox in pairs(inboxes) do
    call('PUBLISH', prefix .. ':inbox:' .. name, cjson.encode({ inbox.ids, inbox.groups }))
  end
end

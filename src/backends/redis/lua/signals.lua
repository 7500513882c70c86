-- signals.lua: what a script makes known, published when all of it is written.

local nudges, inboxes = {}, {}

-- Work is ready in this queue, or will be at `due`.
local function nudge(queue, due)
  if not due then return end
  if due < now then due = now end
  local known = nudges[queue]
  if not known then
    nudges[queue] = { due, due }
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

local function tell(name, id)
  local ids = inbox_of(name).ids
  ids[#ids + 1] = id
end

local function tell_group(name, id)
  local groups = inbox_of(name).groups
  groups[#groups + 1] = id
end

local function publish_all()
  local list = {}
  for queue, dues in pairs(nudges) do
    list[#list + 1] = { queue, dues[1] > now and dues[1] or 0 }
    -- Ready now, and something else later: both are told.
    if dues[1] <= now and dues[2] > now then list[#list + 1] = { queue, dues[2] } end
  end
  if #list > 0 then call('PUBLISH', prefix .. ':nudges', cjson.encode(list)) end
  for name, inbox in pairs(inboxes) do
    call('PUBLISH', prefix .. ':inbox:' .. name, cjson.encode({ inbox.ids, inbox.groups }))
  end
end

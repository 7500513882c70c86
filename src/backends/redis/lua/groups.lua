-- groups.lua: how many items of a group are open, its one value, and which inboxes wait for it.
--
-- A packed array in the hash `groups`: open, final, version, done, kept until or false, watchers or false. The value is text
-- in the hash `values`.
local GROUPS, VALUES = prefix .. ':groups', prefix .. ':values'
local DAY = 86400000

local pages, page_order = {}, {}

local function new_page()
  return { open = 0, final = false, version = 0, done = false, ku = false, watchers = false }
end

local function fetch_groups(ids)
  local missing = {}
  for i = 1, #ids do
    local id = ids[i]
    if pages[id] == nil then
      pages[id] = false
      missing[#missing + 1] = id
    end
  end
  local found, without = many(GROUPS, missing), {}
  for i = 1, #missing do
    if not found[i] then
      without[#without + 1] = missing[i]
    else
      local g = cmsgpack.unpack(found[i])
      local page = { open = g[1], final = g[2], version = g[3], done = g[4], ku = g[5], watchers = g[6] }
      if page.ku and page.ku <= now then
        put(GROUPS, missing[i], false)
        put(VALUES, missing[i], false)
        remove(RETENTION, 'g' .. missing[i])
      else
        pages[missing[i]] = page
      end
    end
  end
  -- The group of a light item is not stored.
  fetch(without)
  for i = 1, #without do
    local id = without[i]
    local light, more = lights[id], records[id] and records[id][MORE]
    if light and not (more and more.ku and more.ku <= now) then
      pages[id] = {
        open = light.is_ended and 0 or 1, final = false, version = 0, done = light.is_ended or false, ku = more and more.ku or false,
        watchers = not light.is_ended and light.waiter and { light.waiter } or false, value = false, is_light = true,
      }
    end
  end
end

-- The group, or nil.
local function known_group(id)
  if pages[id] == nil then fetch_groups({ id }) end
  return pages[id] or nil
end

-- The group, created if it is missing.
local function group_of(id)
  local page = known_group(id)
  if not page then
    page = new_page()
    page.value = false
    pages[id] = page
  end
  return page
end

local function change_group(id, page)
  if page.dirty then return end
  page.dirty = true
  page_order[#page_order + 1] = id
  if page.is_light then
    page.is_light = nil
    change(id)
  end
end

-- The group of a light item that becomes a whole one.
function file_group_of(id)
  change_group(id, group_of(id))
end

local function value_of(id, page)
  if page.value == nil then page.value = page.version > 0 and call('HGET', VALUES, id) or false end
  return page.value
end

local function watch_group(id, page, inbox)
  if page.watchers then
    for _, known in ipairs(page.watchers) do
      if known == inbox then return end
    end
    page.watchers[#page.watchers + 1] = inbox
  else
    page.watchers = { inbox }
  end
  change_group(id, page)
end

-- A group is removed with the item that closed it, unless that item is removed early.
local without_item = {}
function forget_group_of(id, r)
  local group = r[GROUP] or id
  without_item[group] = true
  local page = known_group(group)
  if not page or not page.done then return end
  -- Both were kept forever, and a person deleted the item: nothing else would ever remove its group.
  if not page.ku and not r[GROUP] and not (r[MORE] and r[MORE].ku) then
    page.ku = now + DAY
    change_group(group, page)
  end
  if page.ku then add(RETENTION, page.ku, 'g' .. group) end
end

local function settle_groups()
  for i = 1, #page_order do
    local id = page_order[i]
    local page = pages[id]
    page.dirty = nil
    put(GROUPS, id, cmsgpack.pack({ page.open, page.final, page.version, page.done, page.ku, page.watchers }))
  end
  page_order = {}
end

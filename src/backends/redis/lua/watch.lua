-- watch.lua: notifies an inbox when these items end and these groups close. The caller reads them again afterwards.
--
-- ARGV  now, inbox, count, ids..., groups...
local inbox, count_of_ids = ARGV[2], tonumber(ARGV[3])
local ids, groups = {}, {}
for i = 4, #ARGV do
  if i < 4 + count_of_ids then ids[#ids + 1] = ARGV[i] else groups[#groups + 1] = ARGV[i] end
end
fetch(ids)
fetch_groups(groups)
for i = 1, #ids do
  local r = item(ids[i])
  if r and (r[STATE] == 'p' or r[STATE] == 'r') then
    change(ids[i])
    local more = more_of(r)
    local is_known = false
    if more.ws then for _, known in ipairs(more.ws) do is_known = is_known or known == inbox end end
    if not is_known then
      more.ws = more.ws or {}
      more.ws[#more.ws + 1] = inbox
    end
  end
end
for i = 1, #groups do
  local page = pages[groups[i]]
  if page and not page.done then watch_group(groups[i], page, inbox) end
end
settle_groups()
settle_records()
return 1

-- promote.lua: brings the lists up to date, in steps: due items wait, expired items are removed.
--
-- ARGV  now, step, and the queues; without any, all that have items
-- REPLY 1 (another call would find more) or 0 (all is up to date), how many ended items were removed
local step = tonumber(ARGV[2])
local queues = {}
if #ARGV > 2 then
  for i = 3, #ARGV do queues[ARGV[i]] = true end
else
  for _, field in ipairs(call('HKEYS', COUNTS)) do
    local size, rest = string.match(field, '^[srb](%d+):(.*)$')
    if size then queues[string.sub(rest, 1, tonumber(size))] = true end
  end
end
even_when_full()
local more = sweep(step)
if free_resumed(step) then more = true end
for queue in pairs(queues) do
  if promote(queue, step) then more = true end
end
settle_groups()
settle_records()
publish_all()
return { more and 1 or 0, removed_items }

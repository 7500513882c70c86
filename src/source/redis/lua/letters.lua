-- letters.lua: acts on dead letters of a stream. Each is gone from the list of letters in the step that puts it back.
-- ARGV … dead-letter stream, redrive or discard, the beginning of the fields that were added to a letter, ids
-- REPLY how many were still there
local letters, what, mark = ARGV[3], ARGV[4], ARGV[5]
local found = 0
for i = 6, #ARGV do
  local entry = redis.call('XRANGE', letters, ARGV[i], ARGV[i])[1]
  if entry then
    if what == 'redrive' then
      local again = { stream, '*' }
      for j = 1, #entry[2], 2 do
        if string.sub(entry[2][j], 1, #mark) ~= mark then
          again[#again + 1] = entry[2][j]
          again[#again + 1] = entry[2][j + 1]
        end
      end
      redis.call('XADD', unpack(again))
    end
    found = found + redis.call('XDEL', letters, ARGV[i])
  end
end
return found

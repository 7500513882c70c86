-- What every script of a stream begins with.
-- KEYS stream   ARGV group, consumer, … (each script says what follows)
local stream = KEYS[1]
local group, me = ARGV[1], ARGV[2]

-- Beside the stream, in its slot of a cluster: what was put back and when it is due, and the notes of what was put back.
local beside = (string.find(stream, '{[^}]+}') and stream or '{' .. stream .. '}') .. ':millrace:' .. group
local due, notes = beside .. ':due', beside .. ':notes'

local function nowMs()
  local time = redis.call('TIME')
  return time[1] * 1000 + math.floor(time[2] / 1000)
end

-- An id as a member of `due`: filled up, so that members with the same score stand in the order of their ids.
local function member(id)
  local ms, seq = string.match(id, '^(%d+)-(%d+)$')
  return string.rep('0', 20 - #ms) .. ms .. '-' .. string.rep('0', 20 - #seq) .. seq
end

local function idOf(filled)
  local ms, seq = string.match(filled, '^0*(%d+)-0*(%d+)$')
  return ms .. '-' .. seq
end

-- Its place in the list of the group: id, consumer, idle ms, starts. Nothing where it is settled.
local function pendingOf(id)
  return redis.call('XPENDING', stream, group, id, id, 1)[1]
end

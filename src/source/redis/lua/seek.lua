-- seek.lua: moves the group. What is out, or was put back, stays with it.
-- ARGV … the id behind which it goes on; '$' = with what comes next
redis.call('XGROUP', 'SETID', stream, group, ARGV[3])

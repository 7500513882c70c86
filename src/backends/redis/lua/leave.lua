-- leave.lua: a worker that has stopped in order is on record no longer.
--
-- ARGV  now, worker id
call('ZREM', prefix .. ':workers', ARGV[2])
call('HDEL', prefix .. ':worker', ARGV[2])
return true

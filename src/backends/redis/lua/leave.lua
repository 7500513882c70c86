-- leave.lua: removes the record of a worker that has stopped.
--
-- ARGV  now, worker id
call('ZREM', prefix .. ':workers', ARGV[2])
call('HDEL', prefix .. ':worker', ARGV[2])
return true

-- Serves a bucket that was being rebuilt.
--
-- ARGV  1 the new stamp
-- Reply the time, …
call('SET', HEAD, ARGV[1] .. pack('>I6I6I6', now, last, acknowledged))
return reply()

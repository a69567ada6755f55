-- The oldest events of a bucket's journal that are not acknowledged.
--
-- ARGV  1 how many at most
-- Reply the time, …, and the entries of the stream as they are
return reply(redis.call('XRANGE', JOURNAL, '-', '+', 'COUNT', ARGV[1]))

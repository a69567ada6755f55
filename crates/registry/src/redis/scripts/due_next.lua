-- When the first pool of a bucket is due.
--
-- Reply the time, …, and when that is, if there is a pool
return reply(redis.call('ZRANGE', DUE, 0, 0, 'WITHSCORES')[2])

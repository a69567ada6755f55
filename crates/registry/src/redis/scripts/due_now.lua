-- Lists the pools of a bucket that are due, by the bucket's own clock.
--
-- ARGV  1 maximum number of pools
-- Reply the time, …, and the pools' names in the due-index
local function step()
  return reply(unpack(redis.call('ZRANGEBYSCORE', DUE, '-inf', now, 'LIMIT', 0, ARGV[1])))
end

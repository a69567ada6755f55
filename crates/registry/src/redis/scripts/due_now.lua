-- The pools of a bucket that are due.
--
-- ARGV  1 how many at most
-- Reply the time, …, and what they are called in the due-index
local function step()
  return reply(unpack(redis.call('ZRANGEBYSCORE', DUE, '-inf', now, 'LIMIT', 0, ARGV[1])))
end

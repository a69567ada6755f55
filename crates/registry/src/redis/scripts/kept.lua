-- Reads some pools of a bucket in their stored form (an optimistic read for expire.lua).
--
-- KEYS  from 4 on the pools
-- Reply the time, …, and each pool: see lib/pool.lua; nil for a pool that is not open
local function step()
  return reply(unpack(redis.call('MGET', unpack(KEYS, 4))))
end

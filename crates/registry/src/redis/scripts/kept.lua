-- Some pools of a bucket as they are kept.
--
-- KEYS  from 4 on theirs
-- Reply the time, …, and each: see lib/pool.lua; nothing for one that is not open
local function step()
  return reply(unpack(redis.call('MGET', unpack(KEYS, 4))))
end

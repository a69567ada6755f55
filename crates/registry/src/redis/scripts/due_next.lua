-- When the first pool of a bucket is due. If that is soon, the bucket's alarm is set to go off then.
--
-- The alarm is a key that expires: who listens to keyspace notifications hears of it at once. Nobody depends on it.
--
-- KEYS  4 the alarm
-- Reply the time, …, and when the first is due, if there is a pool
local function step()
  local due = redis.call('ZRANGE', DUE, 0, 0, 'WITHSCORES')[2]
  if due and tonumber(due) > now and tonumber(due) <= now + ALARM_AHEAD_MS then
    redis.call('SET', KEYS[4], '', 'PXAT', due)
  end
  return reply(due)
end

-- Empties a bucket that is being rebuilt, some pools a step, and in the last step its journal.
--
-- KEYS  from 4 on those of some pools · args  but for the last: what they are called in the due-index
-- Reply the time, …, and how many pools are left
local function step()
  if #KEYS > 3 then
    redis.call('UNLINK', unpack(KEYS, 4))
    redis.call('ZREM', DUE, unpack(ARGV, 1, #ARGV - 1))
  end
  local left = redis.call('ZCARD', DUE)
  if left == 0 then
    redis.call('UNLINK', DUE, JOURNAL)
    last, acknowledged, due, must_keep_head = 0, 0, NEVER, true
    keep_head()
  end
  return reply(left)
end

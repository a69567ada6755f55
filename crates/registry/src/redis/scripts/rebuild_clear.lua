-- Clears a bucket under rebuild, some pools per step, and in the last step journal and admission ring. The
-- last step raises the clock's high-water mark, and moves the bucket to the stage FILLING, which refuses a late
-- duplicate of any clearing step.
--
-- KEYS  4 the ring · from 5 on some pools
-- ARGV  the pools' names in the due-index · last but one: a lower bound of the bucket's time from now on
-- Reply the time, …, and the number of pools left
local function step()
  if #KEYS > 4 then
    redis.call('UNLINK', unpack(KEYS, 5))
    redis.call('ZREM', DUE, unpack(ARGV, 1, #ARGV - 2))
  end
  local left = redis.call('ZCARD', DUE)
  if left == 0 then
    redis.call('UNLINK', DUE, JOURNAL, KEYS[4])
    stamp = stamp:sub(1, 1) .. string.char(FILLING) .. stamp:sub(3)
    last, acknowledged, due, must_keep_head = 0, 0, NEVER, true
    now = math.max(now, tonumber(ARGV[#ARGV - 1]))
    keep_head()
  end
  return reply(left)
end

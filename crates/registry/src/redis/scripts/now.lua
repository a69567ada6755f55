-- The time, whether the bucket is served or not. Stands alone.
--
-- KEYS  1 the head of a bucket: see bucket.lua
-- Reply the time, and how far the clock is behind it
local time = redis.call('TIME')
local clock = time[1] * 1000 + math.floor(time[2] / 1000)
local head = redis.call('GET', KEYS[1])
if not head then
  return { clock, 0 }
end
local mark = struct.unpack('>I6', head, #head - 17)
if clock > mark then
  redis.call('SETRANGE', KEYS[1], #head - 18, struct.pack('>I6', clock))
end
return { math.max(clock, mark), math.max(0, mark - clock) }

-- Reads the time, served bucket or not. Stands alone. Atomic, so that no reader sees the time go back.
--
-- KEYS  1 the head of a bucket: see bucket.lua
-- Reply the time, and the clock's lag behind the time
local time = redis.call('TIME')
local clock = time[1] * 1000 + math.floor(time[2] / 1000)
local head = redis.call('GET', KEYS[1])
if not head then
  return { clock, 0 }
end
local mark, _, _, _, leased_until = struct.unpack('>I6I6I6I6I6', head, #head - HEAD_NUMBERS_BYTES + 1)
-- A clock past the lease may have jumped, and does not advance the mark: see bucket.lua.
if clock > mark and clock <= leased_until then
  redis.call('SETRANGE', KEYS[1], #head - HEAD_NUMBERS_BYTES, struct.pack('>I6', clock))
end
return { math.max(clock, mark), math.max(0, mark - clock) }

-- Stops serving a bucket and raises its epoch, so that the bucket can be rebuilt. Stands alone.
--
-- Accepts a bucket of any lower epoch, a missing bucket, and a bucket under rebuild for the same epoch.
--
-- KEYS  1 the head of the bucket: see bucket.lua
-- ARGV  1 the new stamp, of a bucket under rebuild · 2 upper bound of the clock: a later clock has jumped
--       3 milliseconds from now in which the rebuild may take its further steps
-- Reply 1, or NOT_SERVING if the bucket is or was in a higher epoch, is served in this epoch, or the clock
--       jumped
local time = redis.call('TIME')
local clock = time[1] * 1000 + math.floor(time[2] / 1000)
if clock > tonumber(ARGV[2]) then
  return { NOT_SERVING }
end
local head = redis.call('GET', KEYS[1])
local numbers = struct.pack('>I6I6I6I6', 0, 0, 0, NEVER)
if head then
  local format, state, epoch = struct.unpack('>BBI6', head)
  local next_format, next_state, next_epoch = struct.unpack('>BBI6', ARGV[1])
  local again = epoch == next_epoch and state == next_state
  if format ~= next_format or not (epoch < next_epoch or again) then
    return { NOT_SERVING }
  end
  numbers = head:sub(-HEAD_NUMBERS_BYTES, -7)
end
local leased_until = math.min(clock + tonumber(ARGV[3]), NEVER)
redis.call('SET', KEYS[1], ARGV[1] .. numbers .. struct.pack('>I6', leased_until))
return { 1 }

-- Stops serving a bucket, so that it can be filled anew. Stands alone.
--
-- From any lower epoch, from nothing, and again while it is being rebuilt for the same.
--
-- KEYS  1 the head of the bucket: see bucket.lua
-- ARGV  1 the new stamp: that of a bucket which is being rebuilt
-- Reply 1, or NOT_SERVING if the bucket is or was in a higher epoch, or served in this one
local head = redis.call('GET', KEYS[1])
local numbers = string.rep('\0', 18)
if head then
  local format, state, epoch = struct.unpack('>BBI6', head)
  local next_format, next_state, next_epoch = struct.unpack('>BBI6', ARGV[1])
  local again = epoch == next_epoch and state == next_state
  if format ~= next_format or not (epoch < next_epoch or again) then
    return { NOT_SERVING }
  end
  numbers = head:sub(-18)
end
redis.call('SET', KEYS[1], ARGV[1] .. numbers)
return { 1 }

-- Renews the leases of a group of buckets for a node that serves the group's clients. Stands alone. Atomic,
-- so that no lease ends between the check and the renewal.
--
-- KEYS  the heads of the buckets: see bucket.lua
-- ARGV  1 the new lease, in milliseconds from now · then the stamp of each bucket
-- Reply the number of renewed leases; a bucket with another stamp or an expired lease is left out
local time = redis.call('TIME')
local clock = time[1] * 1000 + math.floor(time[2] / 1000)
local lease = struct.pack('>I6', math.min(clock + tonumber(ARGV[1]), NEVER))
local renewed = {}
for i, head in ipairs(redis.call('MGET', unpack(KEYS))) do
  local stamp = ARGV[i + 1]
  if head and head:sub(1, -HEAD_NUMBERS_BYTES - 1) == stamp then
    local mark, _, _, _, leased_until = struct.unpack('>I6I6I6I6I6', head, #stamp + 1)
    if clock <= leased_until then
      renewed[#renewed + 1] = KEYS[i]
      renewed[#renewed + 1] = stamp .. struct.pack('>I6', math.max(clock, mark)) .. head:sub(-24, -7) .. lease
    end
  end
end
if #renewed > 0 then
  redis.call('MSET', unpack(renewed))
end
return #renewed / 2

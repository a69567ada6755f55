-- Appends an entry with one event of an unknown kind to a bucket's journal, as a newer version would. The step is
-- atomic: no node takes the entry's number meanwhile.
--
-- KEYS  1 the head of the bucket, 2 its journal: see bucket.lua of the registry
-- Reply the id of the entry
local head = redis.call('GET', KEYS[1])
local epoch = struct.unpack('>I6', head, 3)
local last = struct.unpack('>I6', head, #head - 23) + 1
redis.call('SET', KEYS[1], head:sub(1, -25) .. struct.pack('>I6', last) .. head:sub(-18))
return redis.call('XADD', KEYS[2], string.format('%d-%d', epoch, last), 'e', '\255 of another version')

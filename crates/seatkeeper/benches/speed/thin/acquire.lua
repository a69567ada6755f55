-- Takes a seat of a license, unless `ARGV[1]` seats are taken.
-- KEYS: the sessions of the license, scored by the end of their TTL in seconds.
-- ARGV: seats, session, TTL in seconds.
-- Returns whether the seat was taken, and the number of taken seats.
local now = tonumber(redis.call('TIME')[1])
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now)
local taken = redis.call('ZCARD', KEYS[1])
if taken >= tonumber(ARGV[1]) then return {0, taken} end
redis.call('ZADD', KEYS[1], now + ARGV[3], ARGV[2])
return {1, taken + 1}

-- Raises a tenant's generation, so that entries of older generations are misses.
-- KEYS[1]  the tenant's generation
-- ARGV[1]  lifetime of the generation, in seconds
-- Returns the new generation.
-- Atomic, because a generation without an expiry would stay in Redis for ever.
local generation = redis.call('INCR', KEYS[1])
redis.call('EXPIRE', KEYS[1], ARGV[1])
return generation

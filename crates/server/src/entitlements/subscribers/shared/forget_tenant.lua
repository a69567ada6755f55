-- Begins a new generation of a tenant: what was read in an older one counts no more.
-- KEYS[1]  the tenant's generation
-- ARGV[1]  for how many seconds it is known
-- Returns the generation.
local generation = redis.call('INCR', KEYS[1])
redis.call('EXPIRE', KEYS[1], ARGV[1])
return generation

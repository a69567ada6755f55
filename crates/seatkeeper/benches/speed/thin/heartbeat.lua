-- Renews a session that is still in the set.
-- KEYS: the sessions of the license, scored by the end of their TTL in seconds.
-- ARGV: session, TTL in seconds.
-- Returns 1 if the session's end moved.
return redis.call('ZADD', KEYS[1], 'XX', 'CH', redis.call('TIME')[1] + ARGV[2], ARGV[1])

-- Keeps what was read of a subscriber, unless something may have changed since it was read.
-- KEYS[1]  the tenant's generation
-- KEYS[2]  the subscriber's entry: the generation it was read in, a space, the text; empty while it is closed
-- ARGV[1]  the generation when the read began
-- ARGV[2]  what was read
-- ARGV[3]  how many seconds it counts
-- Returns whether it was kept.
local generation = redis.call('GET', KEYS[1]) or '0'
if generation ~= ARGV[1] or redis.call('GET', KEYS[2]) == '' then
    return 0
end
redis.call('SET', KEYS[2], ARGV[1] .. ' ' .. ARGV[2], 'EX', ARGV[3])
return 1

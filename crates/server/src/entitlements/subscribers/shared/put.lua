-- Stores a subscriber read from the ledger, unless a change may have happened since the read began.
-- KEYS[1]  the tenant's generation
-- KEYS[2]  the subscriber's entry: the generation of the read, a space, the text of ARGV[2]; empty for a tombstone
-- ARGV[1]  the generation when the read began
-- ARGV[2]  the identity of Redis's memory when the read began, a space, and the subscriber as text
-- ARGV[3]  lifetime of the entry, in seconds
-- Returns 1 if stored, 0 if refused.
-- Atomic, because a change between the check and the write would leave a stale entry.
local generation = redis.call('GET', KEYS[1]) or '0'
if generation ~= ARGV[1] or redis.call('GET', KEYS[2]) == '' then
    return 0
end
redis.call('SET', KEYS[2], ARGV[1] .. ' ' .. ARGV[2], 'EX', ARGV[3])
return 1

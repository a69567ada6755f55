-- Decides for each key if a use passes by the key's rate (GCRA), and counts a use that passes. A key may
-- occur twice.
-- KEYS[i]       time from which the rate is unused again, in microseconds of this server's clock
-- ARGV[2i - 1]  the burst: uses that pass at once
-- ARGV[2i]      microseconds between two uses at the steady pace
-- Returns  the time, then for each key: 1 if the use passes, else 0; time from which the rate is unused again
-- Atomic, so that concurrent nodes cannot both take the last use of a rate. The server's clock serves all
-- nodes.
local clock = redis.call('TIME')
local now = clock[1] * 1000000 + clock[2]
local told = { now }
for i, key in ipairs(KEYS) do
    local burst, interval = tonumber(ARGV[2 * i - 1]), tonumber(ARGV[2 * i])
    local farthest = now + burst * interval
    local kept = tonumber(redis.call('GET', key) or now)
    local busy_until = math.min(math.max(kept, now), farthest)
    local next = busy_until + interval
    local passes = next <= farthest
    if passes then
        busy_until = next
    end
    if busy_until ~= kept then
        -- `%.0f` writes all digits; Lua's own conversion would round a number of this length. The TTL is in
        -- whole milliseconds, so the key outlives its use a little.
        local stays = math.ceil((busy_until - now) / 1000) + 1
        redis.call('SET', key, string.format('%.0f', busy_until), 'PX', stays)
    end
    told[2 * i], told[2 * i + 1] = passes and 1 or 0, busy_until
end
return told

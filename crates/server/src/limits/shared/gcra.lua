-- Decides for each key whether something may happen now by its rate (GCRA), and counts it if so. A key may come twice.
-- KEYS[i]       when the rate will be unused again, in microseconds of this server's clock; gone once it is
-- ARGV[2i - 1]  how many may happen at once
-- ARGV[2i]      after how many microseconds one more may
-- Returns  the time · then for each key: 1 if it may happen, else 0 · when the rate will be unused again
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
        -- All digits: the number has more than Lua would write by itself. It stays a little longer than it counts, for
        -- keys go by whole milliseconds.
        local stays = math.ceil((busy_until - now) / 1000) + 1
        redis.call('SET', key, string.format('%.0f', busy_until), 'PX', stays)
    end
    told[2 * i], told[2 * i + 1] = passes and 1 or 0, busy_until
end
return told

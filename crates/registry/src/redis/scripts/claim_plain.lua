-- Denies a claim in the common case: the pool is full of live sessions, and the denial is only counted. Every
-- other claim takes `rare_step` (claim.lua). Follows lib/plain.lua.
--
-- ARGV  2 to 21 as in claim.lua
-- Reply the time, …, live sessions, limit, FULL, and the time until a seat can come free; or the reply of
--       `rare_step`

-- Returns whether the claim can only be admitted to a free seat, resumed or denied.
local function is_plain_claim()
  local told, when_full, holder, named_id, replace_id = ARGV[3], ARGV[6], ARGV[8], ARGV[12], ARGV[14]
  return when_full == 'd' and holder ~= '' and named_id == '' and replace_id == ''
    and (told == '' or told == raw:sub(terms_at, terms_at + TERMS_BYTES - 1))
    and last - acknowledged < tonumber(ARGV[19])
end

-- Returns the time at which the first session of a full small pool falls silent; nil if the pool is not full,
-- or if the holder may have a session.
local function silent_in_small()
  if raw:find(ARGV[8], sessions_at, true) then
    return nil
  end
  local at, count, silent = sessions_at, 0, NEVER
  while at <= #raw do
    local heartbeat, own_ttl, length = struct.unpack('>I6I5H', raw, at + 16)
    count, silent, at = count + 1, math.min(silent, heartbeat + own_ttl), at + 29 + length
  end
  return count == limit and silent or nil
end

-- Returns the same for a full large pool with one TTL in use.
local function silent_in_large()
  local has_one_ttl = sessions_at + 4 == #raw
  if not has_one_ttl or redis.call('ZCARD', ORDER) ~= limit or redis.call('HEXISTS', SESSIONS, ARGV[9]) == 1 then
    return nil
  end
  return redis.call('ZRANGE', ORDER, 0, 0, 'WITHSCORES')[2] + struct.unpack('>I5', raw, sessions_at)
end

-- Counts a denial as denials.lua does. Returns false without a change if a denial has to go on record.
local function count_denial(free_in)
  local began, recorded, counted = struct.unpack('>I6BI5', raw, denials_at)
  if recorded < DENIALS_RECORDED_MAX or counted == 0 or now >= began + DENIAL_WINDOW_MS then
    return false
  end
  local denials = struct.pack('>I6BI5BI6', began, recorded, counted + 1, FULL, free_in) .. ARGV[8]
  redis.call('SET', POOL,
    raw:sub(1, denials_at - 3) .. struct.pack('>Hc0', #denials, denials) .. raw:sub(sessions_at))
  return true
end

local function deny_plain()
  if not denials_at or not is_plain_claim() then
    return nil
  end
  local silent = (is_large and silent_in_large or silent_in_small)()
  if not silent or silent <= now then
    return nil
  end
  local free_in = math.min(silent, ends_at) - now
  if count_denial(free_in) then
    keep_head()
    return reply(limit, limit, FULL, free_in)
  end
end

local function step()
  return plain_or_rare(deny_plain)
end

-- Renews a session in the common case: the session is live, in a pool with known, open terms, and keeps its
-- TTL. Every other heartbeat takes `rare_step` (heartbeat.lua). Follows lib/plain.lua.
--
-- ARGV  as in heartbeat.lua
-- Reply the time, …, LIVE, and the session's last heartbeat, TTL and expiry; or the reply of `rare_step`

-- Returns whether the caller may touch the session whose body begins at `at`.
local function may_touch(body, at)
  local who = ARGV[4]
  if who == 'a' then
    return true
  end
  local users = body:byte(at + 1)
  at = at + 2
  if users >= START_FOLLOWS then
    users, at = users - START_FOLLOWS, at + 6
  end
  at = at + 2 + struct.unpack('>H', body, at)
  for _ = 1, users do
    local user
    user, at = struct.unpack('>Hc0', body, at)
    if user == who:sub(2) then
      return true
    end
  end
  return false
end

-- Renews a session of a small pool. Returns whether the session was renewed.
local function renew_in_small()
  local at = sessions_at
  while at <= #raw do
    local id, heartbeat, own_ttl, length = struct.unpack('>c16I6I5H', raw, at)
    if id == ARGV[2] then
      local is_plain = own_ttl == ttl and heartbeat <= now and now < heartbeat + ttl and may_touch(raw, at + 29)
      if is_plain then
        redis.call('SETRANGE', POOL, at + 15, struct.pack('>I6', now))
      end
      return is_plain
    end
    at = at + 29 + length
  end
  return false
end

-- Renews a session of a large pool with one TTL in use. Returns whether the session was renewed.
local function renew_in_large()
  local key, has_one_ttl = ARGV[3], sessions_at + 4 == #raw
  if key == '' or key == NO_KEY or not has_one_ttl or struct.unpack('>I5', raw, sessions_at) ~= ttl then
    return false
  end
  local session = redis.call('HGET', SESSIONS, key)
  if not session or session:sub(1, 16) ~= ARGV[2] or not may_touch(session, 17) then
    return false
  end
  local heartbeat = tonumber(redis.call('ZSCORE', ORDER, key))
  local is_plain = heartbeat <= now and now < heartbeat + ttl
  if is_plain then
    redis.call('ZADD', ORDER, now, key)
  end
  return is_plain
end

local function renew_plain()
  local renew = is_large and renew_in_large or renew_in_small
  if renew() then
    keep_head()
    return reply(LIVE, now, ttl, math.min(now + ttl, ends_at, NEVER))
  end
end

local function step()
  return plain_or_rare(renew_plain)
end

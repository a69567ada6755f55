-- Renews a session in the common case: the session is live, in a pool with known, open terms, and keeps its
-- TTL. Every other heartbeat takes `rare_step` (heartbeat.lua), whose functions are made on demand. The common
-- case reads the values of pool.lua and session.lua in place, because making tables and functions costs more
-- than the renewal itself.
--
-- ARGV  2 to 4 as in lib/one_session.lua
-- Reply the time, …, LIVE, and the session's last heartbeat, TTL and expiry; or the reply of `rare_step`

-- Returns whether the caller may touch the session whose body begins at `at`.
local function may_touch(raw, at)
  local who = ARGV[4]
  if who == 'a' then
    return true
  end
  local users = raw:byte(at + 1)
  at = at + 2
  if users >= START_FOLLOWS then
    users, at = users - START_FOLLOWS, at + 6
  end
  at = at + 2 + struct.unpack('>H', raw, at)
  for _ = 1, users do
    local user
    user, at = struct.unpack('>Hc0', raw, at)
    if user == who:sub(2) then
      return true
    end
  end
  return false
end

-- Renews a session of a small pool, whose sessions begin at `at`. Returns whether the session was renewed.
local function renew_in_small(raw, at, ttl)
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

-- Renews a session of a large pool with one TTL in use, which stands at `at`. Returns whether the session was
-- renewed.
local function renew_in_large(raw, at, ttl)
  local key = ARGV[3]
  if key == '' or key == NO_KEY or at + 4 ~= #raw or struct.unpack('>I5', raw, at) ~= ttl then
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

-- Renews a session in the common case. Returns the reply, or nil without a change.
local function renew_plain()
  local raw = redis.call('GET', POOL)
  local flags = raw and raw:byte()
  if not flags or flags % (2 * HAS_TERMS) < HAS_TERMS or flags >= IS_EMPTY then
    return nil
  end
  local at = 16 + struct.unpack('>H', raw, 14)
  local ttl, ends_at, closed
  ttl, ends_at, closed, at = struct.unpack('>I5I6B', raw, at + 12)
  if closed == 1 or ends_at <= now then
    return nil
  end
  if flags % (2 * HAS_DENIALS) >= HAS_DENIALS then
    at = at + 2 + struct.unpack('>H', raw, at)
  end
  local renew_in = flags % (2 * IS_LARGE) >= IS_LARGE and renew_in_large or renew_in_small
  if renew_in(raw, at, ttl) then
    keep_head()
    return reply(LIVE, now, ttl, math.min(now + ttl, ends_at, NEVER))
  end
end

local rare
local function step()
  local renewed = renew_plain()
  if renewed then
    return renewed
  end
  rare = rare or rare_step()
  return rare()
end

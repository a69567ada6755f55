-- A session: a table of `id`, `heartbeat`, `ttl`, `body`, and in a large pool `key`. Follows pool.lua.
--
-- The body is: tier (1 byte), number of users (1; + START_FOLLOWS if the start follows, otherwise the id
-- encodes the start), start (6), then holder and users (each 2 bytes of length and text). Scripts compare
-- texts and never parse them: the node writes one byte for the user after whom the pool is named.

-- Decodes the body, except for the names of the users.
local function read_body(s)
  if not s.holder then
    local at
    s.tier, s.users, at = struct.unpack('>BB', s.body)
    if s.users >= START_FOLLOWS then
      s.users, s.start_follows = s.users - START_FOLLOWS, true
      s.started, at = struct.unpack('>I6', s.body, at)
    else
      s.started = math.floor(struct.unpack('>I6', s.id) / 16)
    end
    s.holder, s.users_at = struct.unpack('>Hc0', s.body, at)
  end
  return s
end

local function users_of(s)
  local users, at = {}, read_body(s).users_at
  for i = 1, s.users do
    users[i], at = struct.unpack('>Hc0', s.body, at)
  end
  return users
end

local function has_user(s, user)
  for _, each in ipairs(users_of(s)) do
    if each == user then
      return true
    end
  end
  return false
end

-- Returns whether the caller may touch a session: `who` is 'a' for all, or 'u' and the name of a user.
local function covers(who, s)
  return who == 'a' or has_user(s, who:sub(2))
end

-- Returns the time at which a session is over unless renewed.
local function expiry_of(s)
  return math.min(s.heartbeat + s.ttl, pool.ends_at, NEVER)
end

-- Returns whether a session is over. Closed terms end every session, although not in one step if there are
-- many.
local function is_over(s)
  return pool.closed or expiry_of(s) <= now
end

-- Returns a session's fields for a reply: id, last heartbeat, TTL, expiry, body.
local function shown(s)
  return s.id, s.heartbeat, s.ttl, expiry_of(s), s.body
end

-- Returns whether `a` precedes `b` in the order of eviction: last heartbeat, start, id.
local function before(a, b)
  if a.heartbeat ~= b.heartbeat then
    return a.heartbeat < b.heartbeat
  end
  if read_body(a).started ~= read_body(b).started then
    return a.started < b.started
  end
  local a1, a2, a3 = struct.unpack('>I6I6I4', a.id)
  local b1, b2, b3 = struct.unpack('>I6I6I4', b.id)
  if a1 ~= b1 then
    return a1 < b1
  end
  return a2 < b2 or (a2 == b2 and a3 < b3)
end

local function least(list)
  local found
  for _, s in ipairs(list) do
    if not found or before(s, found) then
      found = s
    end
  end
  return found
end

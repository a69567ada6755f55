-- Changing who is in the pool. Follows find.lua. Small pools are written by save_pool, large ones at once.

-- The place of a TTL among those in use. Should there be more of them than a pool may have, which takes as many
-- changes of its terms within one TTL, the session gets the longest that is not longer.
local function place_of(its_ttl)
  for n, known in ipairs(ttls) do
    if known == its_ttl then
      return n
    end
  end
  for n = 1, #ttls do
    local base = (n - 1) * RANGE
    if call('ZCOUNT', ORDER, base, base + RANGE - 1) == 0 then
      ttls[n], changed = its_ttl, true
      return n
    end
  end
  if #ttls < TTLS_MAX then
    ttls[#ttls + 1], changed = its_ttl, true
    return #ttls
  end
  local nearest = 1
  for n, known in ipairs(ttls) do
    if known < its_ttl and (known > ttls[nearest] or ttls[nearest] > its_ttl) then
      nearest = n
    end
  end
  return nearest
end

local function put_in_order(s)
  local n = place_of(s.ttl)
  s.ttl = ttls[n]
  call('ZADD', ORDER, (n - 1) * RANGE + s.heartbeat, s.key)
end

local function put_large(s)
  call('HSET', SESSIONS, s.key, s.id .. s.body)
  put_in_order(s)
end

-- Adds a session; neither its id nor its holder is in.
local function insert(s)
  count, changed = count + 1, true
  if large then
    return put_large(s)
  end
  sessions[count] = s
  if count > SMALL_MAX then
    large, ttls = true, {}
    for _, each in ipairs(sessions) do
      each.key = each.key or key_of(read_body(each).holder)
      put_large(each)
    end
    sessions = nil
  end
end

-- Takes sessions out.
local function remove_all(gone)
  if #gone == 0 then
    return
  end
  count, changed = count - #gone, true
  if large then
    local keys = {}
    for i, s in ipairs(gone) do
      keys[i] = s.key
    end
    call('ZREM', ORDER, unpack(keys))
    call('HDEL', SESSIONS, unpack(keys))
  else
    local is_gone, left = {}, {}
    for _, s in ipairs(gone) do
      is_gone[s] = true
    end
    for _, s in ipairs(sessions) do
      if not is_gone[s] then
        left[#left + 1] = s
      end
    end
    sessions = left
  end
  if count == 0 then
    large, ttls, sessions = false, nil, {}
  end
end

-- Renews a session now, for this TTL.
local function renew(s, its_ttl)
  local same_ttl = s.ttl == its_ttl
  s.heartbeat, s.ttl = math.max(s.heartbeat, now), its_ttl
  if large then
    put_in_order(s)
  elseif same_ttl then
    s.renewed = true
  else
    changed = true
  end
end

-- Writes the users of a session anew.
local function set_users(s, users)
  local parts = {
    pack('>BB', s.tier, #users + (s.start_follows and START_FOLLOWS or 0)),
    s.start_follows and pack('>I6', s.started) or '',
    pack('>Hc0', #s.holder, s.holder),
  }
  s.users, s.users_at = #users, #parts[1] + #parts[2] + #parts[3] + 1
  for i, user in ipairs(users) do
    parts[3 + i] = pack('>Hc0', #user, user)
  end
  s.body = table.concat(parts)
  if large then
    call('HSET', SESSIONS, s.key, s.id .. s.body)
  else
    changed = true
  end
end

-- Lets a user share a session. Past USERS_MAX the latest to join gives way.
local function join(s, user)
  if has_user(s, user) then
    return
  end
  local users = users_of(s)
  users[math.min(#users + 1, USERS_MAX)] = user
  set_users(s, users)
end

-- Takes a user out of a session that others share, and says whether it did.
local function leave(s, user)
  local users = users_of(s)
  for i, each in ipairs(users) do
    if each == user and #users > 1 then
      table.remove(users, i)
      set_users(s, users)
      return true
    end
  end
  return false
end

-- The users who share a session. Follows members.lua.

-- Replaces the users of a session.
local function set_users(s, users)
  local parts = {
    struct.pack('>BB', s.tier, #users + (s.start_follows and START_FOLLOWS or 0)),
    s.start_follows and struct.pack('>I6', s.started) or '',
    struct.pack('>Hc0', #s.holder, s.holder),
  }
  s.users, s.users_at = #users, #parts[1] + #parts[2] + #parts[3] + 1
  for i, user in ipairs(users) do
    parts[3 + i] = struct.pack('>Hc0', #user, user)
  end
  s.body = table.concat(parts)
  members.rewrite(s)
end

-- Adds a user to a session. Past USERS_MAX, the latest user to join gives way.
local function join(s, user)
  if not has_user(s, user) then
    local users = users_of(s)
    users[math.min(#users + 1, USERS_MAX)] = user
    set_users(s, users)
  end
end

-- Removes a user from a shared session, unless the user is alone. Returns whether the user was removed.
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

-- Finds the session of a call among the sessions that the caller may touch. Returns nil and the reply if
-- there is no such session. Leaves the pool's count unset (see `count_members`). Follows members.lua.
--
-- ARGV  2 the session's id, 3 its key, or '' if unknown · 4 the caller
local function find_session()
  local id, key, who = ARGV[2], ARGV[3], ARGV[4]
  if not load_pool() then
    return nil, reply(MISSING)
  end
  choose_members()
  if members.needs_key(id, key) then
    return nil, { KEY_NEEDED }
  end
  local s = members.by_id(id, key)
  if not s or not covers(who, s) then
    return nil, reply(MISSING)
  end
  return s
end

-- Finds the session that a call is about, of those who may touch it; where there is none, the second is the answer. How
-- many are in the pool is not known then.
-- Follows members.lua.
--
-- ARGV  2 the session, 3 its key, or nothing if it is not known · 4 who asks
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

-- Finds the session that a call is about, of those who may touch it: `s`. Where there is none, that is the answer.
-- Follows members.lua.
--
-- ARGV  2 the session, 3 its key, or nothing if it is not known · 4 who asks
local id, key, who = ARGV[2], ARGV[3], ARGV[4]
if not load_pool() then
  return reply(MISSING)
end
find_members()
if members.needs_key(id, key) then
  return { KEY_NEEDED }
end
local s = members.by_id(id, key)
if not s or not covers(who, s) then
  return reply(MISSING)
end

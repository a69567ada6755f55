-- Ends a session, or lets the caller out of it.
--
-- ARGV  2 the session, 3 its key, or nothing if it is not known · 4 who asks · 5 what caused it · 6 the reason
--       7 the user to let out if others share the session, or nothing
-- Reply the time, …, what was done: GONE and the reason on record, LEFT, or MISSING
local id, key, who, origin, reason, leaver = ARGV[2], ARGV[3], ARGV[4], ARGV[5], tonumber(ARGV[6]), ARGV[7]
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
local over = is_over(s)
if not over and leaver ~= '' and leave(s, leaver) then
  save_pool()
  keep_head()
  return reply(LEFT)
end
take_out_all({ s }, not over and reason or nil)
record_ends(over and '' or origin, 0)
save_pool()
if pool.count == 0 then
  keep_due()
end
keep_head()
return reply(GONE, ended[1].reason)

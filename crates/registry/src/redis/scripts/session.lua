-- Shows a session. What is over in its pool ends first.
--
-- ARGV  2 the session, 3 its key, or nothing if it is not known · 4 who asks
-- Reply the time, …, LIVE and the session, or MISSING
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
forget_over()
record_ends('', 0)
save_pool()
if #ended > 0 then
  keep_due()
end
keep_head()
if is_over(s) then
  return reply(MISSING)
end
return reply(LIVE, shown(s))

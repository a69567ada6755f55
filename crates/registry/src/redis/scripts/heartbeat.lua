-- Renews a session, unless it is over.
--
-- ARGV  2 the session, 3 its key, or nothing if it is not known · 4 who asks
-- Reply the time, …, what was found: LIVE and the session, GONE and its last heartbeat, or MISSING
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
if not is_over(s) then
  renew(s, pool.ttl or s.ttl)
  save_pool()
  keep_head()
  return reply(LIVE, shown(s))
end
take_out_all({ s })
record_ends('', 0)
save_pool()
keep_due()
keep_head()
if ended[1].reason == EXPIRED then
  return reply(GONE, s.heartbeat)
end
return reply(MISSING)

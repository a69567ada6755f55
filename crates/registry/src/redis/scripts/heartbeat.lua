-- Renews a session, unless it is over.
--
-- ARGV  2 the session, 3 its key, or nothing if it is not known · 4 who asks
-- Reply the time, …, what was found: LIVE and the session, GONE and its last heartbeat, or MISSING
local id, key, who = ARGV[2], ARGV[3], ARGV[4]
if not load_pool() then
  return reply(MISSING)
end
if needs_key(id, key) then
  return { KEY_NEEDED }
end
local s = by_id(id, key)
if not s or not covers(who, s) then
  return reply(MISSING)
end
if is_over(s) then
  local reason = over_for(s)
  take_out(s, reason)
  record_ends('', 0)
  save_pool()
  keep_due()
  keep_head()
  if reason ~= EXPIRED then
    return reply(MISSING)
  end
  return reply(GONE, s.heartbeat)
end
renew(s, ttl or s.ttl)
save_pool()
keep_head()
return reply(LIVE, shown(s))

-- Renews a session unless over, and records the end of a session that is over. Serves every heartbeat outside
-- the common case of heartbeat_plain.lua.
--
-- ARGV  2 to 4 as in lib/one_session.lua · 5 '1' if the answer tells the holder the interval of heartbeats. Other
--       holders, and a session with several users, keep a TTL that is longer than the pool's.
-- Reply the time, …, the outcome: LIVE and times as in heartbeat_plain.lua, GONE and the last heartbeat, or
--       MISSING
local function step()
  local s, missing = find_session()
  if not s then
    return missing
  end
  if not is_over(s) then
    local shortest = ARGV[5] == '1' and read_body(s).users == 1 and 0 or s.ttl
    renew(s, math.max(pool.ttl or s.ttl, shortest))
    save_pool()
    keep_head()
    return reply(LIVE, s.heartbeat, s.ttl, expiry_of(s))
  end
  count_members()
  take_out_all({ s })
  record_ends('', 0)
  save_pool()
  keep_due()
  keep_head()
  if pool.ended[1].reason == EXPIRED then
    return reply(GONE, s.heartbeat)
  end
  return reply(MISSING)
end

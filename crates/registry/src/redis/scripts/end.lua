-- Ends a session, or removes the caller from a shared session.
--
-- ARGV  2 to 4 as in lib/one_session.lua · 5 the origin · 6 the reason
--       7 the user to remove if the session is shared, or '' · 8 '1' to return the events: see `with_events`
-- Reply the time, …, the outcome: GONE and the reason on record; LEFT; MISSING; at the end the events, if asked for
local function step()
  local s, missing = find_session()
  if not s then
    return missing
  end
  local origin, reason, leaver = ARGV[5], tonumber(ARGV[6]), ARGV[7]
  local over = is_over(s)
  if not over and leaver ~= '' and leave(s, leaver) then
    save_pool()
    keep_head()
    return reply(LEFT)
  end
  count_members()
  take_out_all({ s }, not over and reason or nil)
  record_ends(over and '' or origin, 0)
  save_pool()
  if pool.count == 0 then
    keep_due()
  end
  keep_head()
  return with_events(reply(GONE, pool.ended[1].reason), ARGV[8])
end

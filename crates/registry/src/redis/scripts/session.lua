-- Reads a session, after ending the sessions of its pool that are over.
--
-- ARGV  2 to 4 as in lib/one_session.lua
-- Reply the time, …, LIVE and the session, or MISSING
local function step()
  local s, missing = find_session()
  if not s then
    return missing
  end
  count_members()
  settle()
  if is_over(s) then
    return reply(MISSING)
  end
  return reply(LIVE, shown(s))
end

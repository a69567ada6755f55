-- Ends the sessions of a pool, or offers terms to the pool, which may end sessions. A large pool takes
-- several steps.
--
-- ARGV  2 the origin · 3 the reason, or '' to offer terms · 4 the terms, or ''
-- Reply the time, …, the number of ended sessions, and the number of sessions left to end
local function step()
  local origin, reason = ARGV[2], tonumber(ARGV[3])
  if not load_pool() then
    return { NOT_OPEN }
  end
  find_members()
  if reason then
    end_all(reason)
  else
    revise(ARGV[4])
  end
  record_ends(origin, 0)
  save_pool()
  keep_due()
  keep_head()
  return reply(#pool.ended, (reason or pool.closed) and pool.count or pool.overdue)
end

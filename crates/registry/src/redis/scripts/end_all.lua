-- Ends the sessions of a pool, or lets it learn terms, which may end them. A large pool takes several steps.
--
-- ARGV  2 what caused it · 3 the reason, or nothing to let the pool learn · 4 the terms to learn, or nothing
-- Reply the time, …, how many ended, and how many are left to end
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

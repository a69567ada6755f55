-- Opens a pool with the sessions that are live in the ledger. Leaves an open pool alone, so that retries are
-- idempotent.
--
-- ARGV  2 to 4 as in lib/new_pool.lua · 5 and 6 as in lib/restore.lua · 7 the time from which the ledger's record may
--       be outdated, or ''. An outdated record opens no pool.
-- Reply the time, …
local function step()
  if load_pool() or (ARGV[7] ~= '' and now > tonumber(ARGV[7])) then
    return reply()
  end
  new_pool()
  find_members()
  insert_known()
  revise('')
  record_ends('', 0)
  return save_restored()
end

-- Opens a pool with the sessions that are live in the ledger. Leaves an open pool alone, so that retries are
-- idempotent.
--
-- ARGV  2 to 4 as in lib/new_pool.lua · 5 and 6 as in lib/restore.lua
-- Reply the time, …
local function step()
  if load_pool() then
    return reply()
  end
  new_pool()
  find_members()
  insert_known()
  revise('')
  record_ends('', 0)
  return save_restored()
end

-- Opens a pool with the sessions that the ledger knows as live. Does nothing to a pool that is open.
--
-- ARGV  2 to 4 as in new_pool.lua · 5 '1' if heartbeats keep its sessions alive
--       6 the sessions, each: id (16 bytes), last heartbeat (6), TTL (5), body (2 of length)
-- Reply the time, …
if load_pool() then
  return reply()
end
new_pool()
find_members()

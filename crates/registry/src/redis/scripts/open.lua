-- Opens a pool with the sessions that the ledger knows as live. Does nothing to a pool that is open.
--
-- ARGV  2 the pool's id · 3 the number of its last event · 4 its terms, or nothing · 5 '1' if heartbeats keep its
--       sessions alive · 6 the sessions, each: id (16 bytes), last heartbeat (6), TTL (5), body (2 of length)
-- Reply the time, …
if load_pool() then
  return reply()
end
new_pool(ARGV[2], tonumber(ARGV[3]), ARGV[4])

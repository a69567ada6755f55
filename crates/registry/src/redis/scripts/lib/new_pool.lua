-- A pool that nobody is in yet. Follows rule.lua.
--
-- ARGV  2 the pool's id · 3 the number of its last event · 4 its terms, or nothing
local function new_pool()
  pool.id, pool.seq, pool.last_event, pool.denials = ARGV[2], tonumber(ARGV[3]), 0, ''
  pool.overdue, pool.sessions, pool.count, pool.changed = 0, {}, 0, true
  know(ARGV[4])
end

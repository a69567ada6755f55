-- Creates an empty pool in memory; `save_pool` writes the pool. Follows rule.lua.
--
-- ARGV  2 the pool's id · 3 the number of its last event · 4 its terms, or ''
local function new_pool()
  pool = { id = ARGV[2], seq = tonumber(ARGV[3]), last_event = 0, denials = '', changed = true }
  pool.overdue, pool.sessions, pool.count, pool.ended = 0, {}, 0, {}
  know(ARGV[4])
end

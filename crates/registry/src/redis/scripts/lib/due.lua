-- The pool's place in the due-index: a lower bound of when it next has something to sweep. Follows denials.lua.
--
-- ARGV  1 what the pool is called in the index

local function next_due()
  if pool.overdue > 0 or (pool.closed and pool.count > 0) then
    return now
  end
  -- A heartbeat never makes an expiry earlier: it puts it off or, where the TTL was shortened since, to one TTL
  -- from then on.
  local renewed = pool.count > 0 and pool.ttl and now + pool.ttl or NEVER
  local next = math.min(next_expiry(), renewed, denials_due())
  if next < NEVER then
    return next
  end
  -- An empty pool closes after a while: see sweep.lua.
  return math.max((pool.empty_since or now) + EMPTY_KEPT_MS, now + CLOSING_PAUSE_MS)
end

-- Makes sure that the sweeper comes by in time; an entry that is early enough stays as it is.
local function keep_due()
  local next = next_due()
  redis.call('ZADD', DUE, 'LT', next, ARGV[1])
  note_due(next)
end

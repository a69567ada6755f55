-- The pool's entry in the due-index: a lower bound of the time of its next sweep. Follows denials.lua.
--
-- ARGV  1 the pool's name in the index

local function next_due()
  if pool.overdue > 0 or (pool.closed and pool.count > 0) then
    return now
  end
  -- A heartbeat postpones an expiry or, after a shortened TTL, moves it to one TTL from the heartbeat. So no
  -- expiry comes earlier than the minimum computed below.
  local renewed = pool.count > 0 and pool.ttl and now + pool.ttl or NEVER
  local next = math.min(next_expiry(), renewed, denials_due())
  if next < NEVER then
    return next
  end
  -- An empty pool closes after a while: see sweep.lua.
  return math.max((pool.empty_since or now) + EMPTY_KEPT_MS, now + CLOSING_PAUSE_MS)
end

-- Makes sure that the sweeper visits the pool in time. An entry that is early enough stays.
local function keep_due()
  local next = next_due()
  redis.call('ZADD', DUE, 'LT', next, ARGV[1])
  note_due(next)
end

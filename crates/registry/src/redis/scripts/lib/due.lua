-- The pool's place in the due-index: a lower bound of when it next has something to sweep. Follows denials.lua.
--
-- ARGV  1 what the pool is called in the index
local REF = ARGV[1]

local function next_due()
  if overdue > 0 or (closed and count > 0) then
    return now
  end
  -- A heartbeat never makes an expiry earlier: it puts it off or, where the TTL was shortened since, to one TTL
  -- from then on.
  local renewed = count > 0 and ttl and now + ttl or NEVER
  local next = math.min(next_expiry(), renewed, denials_due())
  if next < NEVER then
    return next
  end
  -- An empty pool closes after a while: see sweep.lua.
  return math.max((empty_since or now) + EMPTY_KEPT_MS, now + CLOSING_PAUSE_MS)
end

-- Makes sure that the sweeper comes by in time; an entry that is early enough stays as it is.
local function keep_due()
  call('ZADD', DUE, 'LT', next_due(), REF)
end

-- Sweeps a pool that is due: ends sessions that are over, records counted denials, and closes a pool that has
-- been empty for a while and has all its events in the ledger.
--
-- Reply the time, …, the number of ended sessions, and 1 if more sessions are or may be over
local ended = 0    -- in all steps of this command; at ENDS_MAX, the remaining steps end nothing

local function step()
  if ended >= ENDS_MAX then
    return reply(0, 1)
  end
  if not load_pool() then
    redis.call('ZREM', DUE, ARGV[1])
    return reply(0, 0)
  end
  find_members()
  revise('')
  record_ends('', 0)
  if pool.denials ~= '' then
    denials_of_pool().flush()
  end
  local unused = pool.empty_since and now >= pool.empty_since + EMPTY_KEPT_MS
  if unused and pool.denials == '' and pool.last_event <= acknowledged then
    redis.call('DEL', POOL)
    redis.call('ZREM', DUE, ARGV[1])
  else
    save_pool()
    local next = next_due()
    redis.call('ZADD', DUE, next, ARGV[1])
    note_due(next)
  end
  keep_head()
  ended = ended + #pool.ended
  local more = pool.overdue > 0 or (pool.closed and pool.count > 0)
  return reply(#pool.ended, more and 1 or 0)
end

-- Does what is due in a pool: ends what is over, records denials that were only counted, and closes the pool if
-- nobody was in it for a while and all that happened in it is in the ledger.
--
-- Reply the time, …, how many sessions ended, and 1 if more are over already, or may be
local ended = 0    -- in all steps of this command: once they are as many as one step may end, the others end none

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

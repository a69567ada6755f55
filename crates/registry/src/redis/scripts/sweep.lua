-- Does what is due in a pool: ends what is over, records denials that were only counted, and closes the pool if
-- nobody was in it for a while and all that happened in it is in the ledger.
--
-- Reply the time, …, how many sessions ended, and 1 if more are over already
if not load_pool() then
  call('ZREM', DUE, REF)
  return reply(0, 0)
end
revise('')
record_ends('', 0)
flush_denials()
local unused = empty_since and now >= empty_since + EMPTY_KEPT_MS
if unused and denials == '' and last_event <= acknowledged then
  call('DEL', POOL)
  call('ZREM', DUE, REF)
else
  save_pool()
  call('ZADD', DUE, next_due(), REF)
end
keep_head()
local more = overdue > 0 or (closed and count > 0)
return reply(#ended, more and 1 or 0)

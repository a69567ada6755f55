-- Trims a bucket's journal up to an event that the ledger has. Idempotent.
--
-- ARGV  1 the number of the last event that the ledger has
-- Reply the time, …
local function step()
  local through = math.min(tonumber(ARGV[1]), last)
  if through > acknowledged then
    acknowledged, must_keep_head = through, true
    redis.call('XTRIM', JOURNAL, 'MINID', journal_id(through + 1))
  end
  keep_head()
  return reply()
end

-- Forgets the events of a bucket's journal that the ledger has.
--
-- ARGV  1 the number of the last one
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

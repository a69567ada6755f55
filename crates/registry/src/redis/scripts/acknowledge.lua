-- Forgets the events of a bucket's journal that the ledger has.
--
-- ARGV  1 the number of the last one
-- Reply the time, …
local through = math.min(tonumber(ARGV[1]), last)
if through > acknowledged then
  acknowledged = through
  call('XTRIM', JOURNAL, 'MINID', EPOCH .. '-' .. through + 1)
  call('SET', HEAD, STAMP .. pack('>I6I6I6', now, last, acknowledged))
end
return reply()

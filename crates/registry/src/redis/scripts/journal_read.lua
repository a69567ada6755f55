-- The oldest events of a bucket's journal behind a place, but for those that are on record by now.
--
-- ARGV  1 the number of the event that they are behind, or 0 · 2 how many at most; at least what an entry may hold
-- Reply the time, …, and the entries of the stream as they are: the first may begin before
local function step()
  local from = math.max(tonumber(ARGV[1]), acknowledged)
  local to = math.min(from + math.max(tonumber(ARGV[2]), ENTRY_EVENTS_MAX), last)
  return reply(redis.call('XRANGE', JOURNAL, '(' .. journal_id(from), journal_id(to)))
end

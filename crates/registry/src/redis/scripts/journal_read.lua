-- The oldest events of a bucket's journal behind a place.
--
-- ARGV  1 the number of the event that they are behind, or 0 · 2 how many, about
-- Reply the time, …, and the entries of the stream as they are: the first may begin before
local function step()
  local to = math.min(ARGV[1] + ARGV[2] + ENTRY_EVENTS_MAX - 1, last)
  return reply(redis.call('XRANGE', JOURNAL, '(' .. journal_id(ARGV[1]), journal_id(to)))
end

-- The oldest events of a bucket's journal behind a place.
--
-- ARGV  1 the number of the event that they are behind, or 0 · 2 how many at most
-- Reply the time, …, and the entries of the stream as they are
local function step()
  return reply(redis.call('XRANGE', JOURNAL, '(' .. journal_id(ARGV[1]), '+', 'COUNT', ARGV[2]))
end

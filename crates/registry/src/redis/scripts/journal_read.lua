-- Reads the oldest unacknowledged events of a bucket's journal after a position.
--
-- ARGV  1 number of the event before the first, or 0 · 2 maximum of events, at least ENTRY_EVENTS_MAX
-- Reply the time, …, and the entries of the stream; the first may begin at or before the position
local function step()
  local from = math.max(tonumber(ARGV[1]), acknowledged)
  local to = math.min(from + math.max(tonumber(ARGV[2]), ENTRY_EVENTS_MAX), last)
  return reply(redis.call('XRANGE', JOURNAL, '(' .. journal_id(from), journal_id(to)))
end

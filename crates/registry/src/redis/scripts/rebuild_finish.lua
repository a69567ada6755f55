-- Serves a bucket that was being rebuilt.
--
-- ARGV  1 the new stamp
-- Reply the time, …
local function step()
  stamp, must_keep_head = ARGV[1], true
  keep_head()
  return reply()
end

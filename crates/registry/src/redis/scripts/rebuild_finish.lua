-- Serves a bucket that was being rebuilt.
--
-- ARGV  1 the new stamp · 2 for how many milliseconds from now on it has its lease
-- Reply the time, …
local function step()
  stamp, must_keep_head = ARGV[1], true
  leased_until = math.min(clock + tonumber(ARGV[2]), NEVER)
  keep_head()
  return reply()
end

-- Serves a bucket after a rebuild.
--
-- ARGV  1 the new stamp · 2 the bucket's lease, in milliseconds from now
-- Reply the time, …
local function step()
  stamp, must_keep_head = ARGV[1], true
  leased_until = math.min(clock + tonumber(ARGV[2]), NEVER)
  keep_head()
  return reply()
end

-- Renews the lease of a bucket: a node serves its clients.
--
-- ARGV  1 for how many milliseconds from now on
-- Reply the time, …
local function step()
  leased_until, must_keep_head = math.min(clock + tonumber(ARGV[1]), NEVER), true
  keep_head()
  return reply()
end

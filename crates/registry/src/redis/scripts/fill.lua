-- Opens a pool of a bucket that is being rebuilt, with some of its sessions, or puts more of them in.
--
-- ARGV  2 to 6 as in open.lua · 7 the clock is not before this time
-- Reply the time, …
local function step()
  now = math.max(now, tonumber(ARGV[7]))
  must_keep_head = true
  if not load_pool() then
    new_pool()
  end
  find_members()
  local answer = restore()
  -- A rebuild that takes half of a TTL from here on goes no further: its sessions would be about to expire.
  leased_until = math.min(leased_until, clock + math.floor(shortest_ttl / 2))
  keep_head()
  return answer
end

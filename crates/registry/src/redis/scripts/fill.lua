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
  return restore()
end

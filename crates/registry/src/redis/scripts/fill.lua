-- Restores sessions into a pool of a bucket under rebuild, and opens the pool with the first batch. The sweeper
-- ends sessions that are over: a fill without events is idempotent.
--
-- ARGV  2 to 6 as in open.lua
-- Reply the time, …
local function step()
  must_keep_head = true
  if not load_pool() then
    new_pool()
  end
  find_members()
  insert_known()
  -- Half of a TTL after this fill, the bucket's lease ends and the rebuild fails: by then the filled sessions
  -- would be about to expire.
  leased_until = math.min(leased_until, clock + math.floor(shortest_ttl / 2))
  return save_restored()
end

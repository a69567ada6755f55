-- Restores sessions into a pool of a bucket under rebuild, and opens the pool with the first batch. The sweeper
-- ends sessions that are over: a fill without events is idempotent.
--
-- ARGV  2 to 6 as in open.lua
-- Reply the time, …
local SAFE_TTL_MS = 15000

local function step()
  must_keep_head = true
  if not load_pool() then
    new_pool()
  end
  find_members()
  insert_known()
  -- Half of a TTL after this fill, the bucket's lease ends and the rebuild fails: by then the filled sessions
  -- would be about to expire. A TTL below SAFE_TTL_MS fails no rebuild: only a served bucket can end its session.
  leased_until = math.min(leased_until, clock + math.floor(math.max(shortest_ttl, SAFE_TTL_MS) / 2))
  return save_restored()
end

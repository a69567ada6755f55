-- Restores the sessions that are live in the ledger. Follows new_pool.lua.
--
-- ARGV  5 '1' if heartbeats keep the pool's sessions alive
--       6 the sessions, each: id (16 bytes), last heartbeat (6), TTL (5), body (2 of length)
-- Reply the time, …
local shortest_ttl -- of the sessions with a full TTL from now

-- Inserts the sessions, except sessions that are in the pool already.
local function insert_known()
  shortest_ttl = NEVER
  -- With heartbeats, each session gets one full TTL from now, since its holder could not send a heartbeat
  -- meanwhile: the longer TTL of session and pool, since the holder heartbeats by the TTL of the last answer.
  -- Without heartbeats, a session keeps its end.
  local has_heartbeats, known, at = ARGV[5] == '1', ARGV[6], 1
  while at <= #known do
    local s = {}
    s.id, s.heartbeat, s.ttl, s.body, at = struct.unpack('>c16I6I5Hc0', known, at)
    s.key = key_of(read_body(s).holder)
    if has_heartbeats then
      s.heartbeat, s.ttl = now, math.max(pool.ttl or 0, s.ttl)
      shortest_ttl = math.min(shortest_ttl, s.ttl)
    end
    if not members.by_holder(s.holder, s.key) and not members.by_id(s.id, s.key) then
      insert(s)
    end
  end
end

-- Writes the pool after a restore.
local function save_restored()
  save_pool()
  keep_due()
  keep_head()
  return reply()
end

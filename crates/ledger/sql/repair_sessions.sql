-- Sets the last heartbeat of every live session to $1. A session of a capacity has no heartbeats and keeps its end,
-- unless the session started after $1: then it lasts one TTL from $1.
UPDATE sessions SET last_heartbeat_at = $1
WHERE id IN (SELECT session_id FROM live_sessions)
  AND (pool_kind <> 'capacity' OR last_heartbeat_at > $1)

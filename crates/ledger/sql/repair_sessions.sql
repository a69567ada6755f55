-- Sets the last heartbeat of every live session to $1.
UPDATE sessions SET last_heartbeat_at = $1 WHERE id IN (SELECT session_id FROM live_sessions)

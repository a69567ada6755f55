-- Ends the sessions of earlier batches that end in this one: the records after $1. Whether a session is
-- live is asked by its reason, as in `flush_heartbeats.sql`.
UPDATE sessions
SET ended_at = e.at,
    end_reason = e.reason,
    last_heartbeat_at = e.last_heartbeat_at,
    expires_at = e.expires_at
FROM audit_log AS e
WHERE e.id > $1
  AND e.action = 'ended'
  AND sessions.id = e.session_id
  AND sessions.end_reason IS NULL

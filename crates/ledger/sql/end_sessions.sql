-- Ends the sessions of earlier batches that end in the records after $1. The `CASE` is explained in
-- `flush_heartbeats.sql`, the upper bound in `begin_sessions.sql`.
UPDATE sessions
SET ended_at = e.at,
    end_reason = e.reason,
    last_heartbeat_at = e.last_heartbeat_at,
    expires_at = e.expires_at
FROM audit_log AS e
WHERE e.id > $1 AND e.id <= 9223372036854775807
  AND e.action = 'ended'
  AND sessions.id = e.session_id
  AND CASE WHEN sessions.end_reason IS NULL THEN TRUE ELSE FALSE END

-- Updates the last heartbeats of live sessions, and the TTLs that the holders were told. An older heartbeat never replaces
-- a newer heartbeat. `/* rows */` stands for a group (session id, time, TTL in milliseconds) per heartbeat.
--
-- Liveness is tested by `end_reason`: for `ended_at`, SQLite would scan the index of all live sessions. The
-- test is in a `CASE`, because PostgreSQL without statistics expects `IS NULL` to match almost no row, and
-- would scan all sessions.
UPDATE sessions
SET last_heartbeat_at = beat.column2, ttl_ms = beat.column3
FROM (VALUES /* rows */) AS beat
WHERE sessions.id = beat.column1
  AND CASE WHEN sessions.end_reason IS NULL THEN TRUE ELSE FALSE END
  AND sessions.last_heartbeat_at < beat.column2

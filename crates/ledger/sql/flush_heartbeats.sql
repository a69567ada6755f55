-- Notes the latest heartbeats of live sessions; an older one never replaces a newer.
-- `/* rows */` stands for one group (session id, time) a heartbeat.
--
-- Whether a session is live is asked by its reason: asked by its time, SQLite would walk the index of all live
-- sessions. It is asked in a CASE, because PostgreSQL takes `IS NULL` for true of almost none while it has no
-- statistics, and would walk all sessions to find those few.
UPDATE sessions
SET last_heartbeat_at = beat.column2
FROM (VALUES /* rows */) AS beat
WHERE sessions.id = beat.column1
  AND CASE WHEN sessions.end_reason IS NULL THEN TRUE ELSE FALSE END
  AND sessions.last_heartbeat_at < beat.column2

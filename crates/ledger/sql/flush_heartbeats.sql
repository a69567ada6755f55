-- Notes the latest heartbeats of live sessions; an older one never replaces a newer.
-- `/* rows */` stands for one group (session id, time) a heartbeat. Whether a session is live is asked
-- by its reason: asked by its time, SQLite would walk the index of all live sessions.
UPDATE sessions
SET last_heartbeat_at = beat.column2
FROM (VALUES /* rows */) AS beat
WHERE sessions.id = beat.column1
  AND sessions.end_reason IS NULL
  AND sessions.last_heartbeat_at < beat.column2

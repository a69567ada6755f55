-- Notes the latest heartbeats of live sessions; an older one never replaces a newer.
-- `/* rows */` stands for one group (session id, time) a heartbeat.
UPDATE sessions
SET last_heartbeat_at = beat.column2
FROM (VALUES /* rows */) AS beat
WHERE sessions.id = beat.column1
  AND sessions.ended_at IS NULL
  AND sessions.last_heartbeat_at < beat.column2

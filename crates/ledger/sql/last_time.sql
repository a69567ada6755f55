-- The latest registry time on record: of a change, or of a live session's heartbeat.
SELECT MAX(at) AS at
FROM (
    SELECT MAX(at) AS at FROM audit_log
    UNION ALL
    SELECT MAX(last_heartbeat_at) AS at FROM sessions WHERE ended_at IS NULL
) AS latest

-- The latest registry time on record: of a change, of a live session's heartbeat, of a job, of a repair of registry
-- time, or until when usage is metered. A node that decides alone dates its decisions by its own clock. Records from
-- before a repair may be dated too late.
SELECT MAX(at) AS at
FROM (
    SELECT MAX(at) AS at
    FROM audit_log
    WHERE stream <> 'node' AND id > (SELECT COALESCE(MAX(audit_head), 0) FROM clock_repairs)
    UNION ALL
    SELECT MAX(repaired_at) AS at FROM clock_repairs
    UNION ALL
    -- Each by its id: a join might read through all sessions that there ever were.
    SELECT MAX((SELECT s.last_heartbeat_at FROM sessions AS s WHERE s.id = l.session_id)) AS at FROM live_sessions AS l
    UNION ALL
    SELECT MAX(COALESCE(locked_at, last_run_at)) AS at FROM jobs
    UNION ALL
    SELECT MAX(ends_at) AS at FROM usage_windows
) AS latest

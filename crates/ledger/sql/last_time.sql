-- The latest registry time on record: of a change, of a live session's heartbeat, or of a job.
SELECT MAX(at) AS at
FROM (
    SELECT MAX(at) AS at FROM audit_log
    UNION ALL
    SELECT MAX(last_heartbeat_at) AS at FROM sessions WHERE ended_at IS NULL
    UNION ALL
    SELECT MAX(COALESCE(locked_at, last_run_at)) AS at FROM jobs
) AS latest

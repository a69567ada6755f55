-- Reads the latest registry time on record, from audit records, jobs, usage windows and repairs of registry
-- time, but not from heartbeats of live sessions (`last_heartbeat.sql`).
--
-- Records of stream 'node' do not count, because a node deciding alone uses its own clock. Records from
-- before a repair do not count, because the wrong clock may have dated them too late. Each stream has its own index by
-- time. `id > 0` is true of every row, and leads to the partial indexes.
SELECT MAX(at) AS at
FROM (
    SELECT MAX(at) AS at
    FROM audit_log
    WHERE stream = 'session' AND id > 0 AND id > (SELECT COALESCE(MAX(audit_head), 0) FROM clock_repairs)
    UNION ALL
    SELECT MAX(at) AS at
    FROM audit_log
    WHERE stream = 'entitlement' AND id > (SELECT COALESCE(MAX(audit_head), 0) FROM clock_repairs)
    UNION ALL
    SELECT MAX(at) AS at
    FROM audit_log
    WHERE stream = 'plan' AND id > 0 AND id > (SELECT COALESCE(MAX(audit_head), 0) FROM clock_repairs)
    UNION ALL
    SELECT MAX(repaired_at) AS at FROM clock_repairs
    UNION ALL
    SELECT MAX(COALESCE(locked_at, last_run_at)) AS at FROM jobs
    UNION ALL
    SELECT MAX(ends_at) AS at FROM usage_windows
) AS latest

-- Reads the start of the next usage window: the end of the last window, or without a window the earliest
-- start of a capacity session on record.
SELECT COALESCE(
    (SELECT MAX(ends_at) FROM usage_windows),
    (
        SELECT MIN(started_at)
        FROM (
            SELECT s.started_at
            FROM live_sessions AS l
            JOIN sessions AS s ON s.id = l.session_id
            WHERE l.pool_kind = 'capacity'
            UNION ALL
            SELECT s.started_at
            FROM audit_log AS e
            JOIN sessions AS s ON s.id = e.session_id
            WHERE e.pool_kind = 'capacity' AND e.action = 'ended'
        ) AS metered
    )
) AS starts_at

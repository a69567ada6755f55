-- Where the next window starts: where the last one ended; the first one at the earliest start of a
-- capacity's session on record.
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

-- Reads the earliest start of a capacity session at $1 or later.
SELECT MIN(started_at) AS starts_at
FROM (
    SELECT s.started_at
    FROM live_sessions AS l
    JOIN sessions AS s ON s.id = l.session_id
    WHERE l.pool_kind = 'capacity' AND s.started_at >= $1
    UNION ALL
    SELECT s.started_at
    FROM audit_log AS e
    JOIN sessions AS s ON s.id = e.session_id
    WHERE e.pool_kind = 'capacity' AND e.action = 'ended' AND e.at > $1 AND s.started_at >= $1
) AS metered

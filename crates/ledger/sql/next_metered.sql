-- Reads the earliest time, $1 or later, at which a capacity session is live.
SELECT MIN(CASE WHEN started_at < $1 THEN $1 ELSE started_at END) AS at
FROM (
    SELECT s.started_at
    FROM live_sessions AS l
    JOIN sessions AS s ON s.id = l.session_id
    WHERE l.pool_kind = 'capacity' AND s.expires_at > $1
    UNION ALL
    SELECT s.started_at
    FROM audit_log AS e
    JOIN sessions AS s ON s.id = e.session_id
    WHERE e.pool_kind = 'capacity' AND e.action = 'ended' AND e.at > $1 AND s.expires_at > $1
) AS metered

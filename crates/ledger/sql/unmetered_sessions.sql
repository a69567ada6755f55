-- Counts the capacity sessions that were live at $1 or later.
SELECT COUNT(*)
FROM (
    SELECT l.session_id
    FROM live_sessions AS l
    JOIN sessions AS s ON s.id = l.session_id
    WHERE l.pool_kind = 'capacity' AND s.expires_at > $1
    UNION ALL
    SELECT e.session_id
    FROM audit_log AS e
    JOIN sessions AS s ON s.id = e.session_id
    WHERE e.pool_kind = 'capacity' AND e.action = 'ended' AND e.at > $1 AND s.expires_at > $1
) AS unmetered

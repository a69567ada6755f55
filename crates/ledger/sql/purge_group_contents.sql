-- Deletes at most $2 of the oldest contents kept before $1 whose member has ended.
DELETE FROM group_contents
WHERE session_id IN (
    SELECT g.session_id FROM group_contents AS g
    WHERE g.at < $1 AND NOT EXISTS (SELECT 1 FROM live_sessions WHERE live_sessions.session_id = g.session_id)
    ORDER BY g.at
    LIMIT $2
)

-- Reads the region to which a session moved on: the target of the first move of its home out of this region after the
-- session's end here. $1 session
SELECT m.peer
FROM audit_log AS a
JOIN home_moves AS m
    ON m.tenant_id = a.tenant_id AND m.user_id = a.pool_id AND m.direction = 'left' AND m.seq >= a.seq
WHERE a.session_id = $1 AND a.action = 'ended' AND a.reason = 'moved'
ORDER BY m.version
LIMIT 1

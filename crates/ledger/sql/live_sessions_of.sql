-- A pool's live sessions, at most $4 of them. $1 tenant, $2 pool kind, $3 pool
SELECT s.*
FROM live_sessions AS l
JOIN sessions AS s ON s.id = l.session_id
WHERE l.tenant_id = $1 AND l.pool_kind = $2 AND l.pool_id = $3
LIMIT $4

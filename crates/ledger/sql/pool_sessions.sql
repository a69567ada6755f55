-- A pool's sessions, live and ended, and whether each stands among the live ones. $1 tenant, $2 pool kind, $3 pool
SELECT s.*, l.session_id IS NOT NULL AS is_live
FROM sessions AS s
LEFT JOIN live_sessions AS l ON l.bucket = substr(s.id, 8, 1) AND l.session_id = s.id
WHERE s.tenant_id = $1 AND s.pool_kind = $2 AND s.pool_id = $3

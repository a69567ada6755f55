-- Reads a pool's sessions, live and ended. `is_live` tells that the session is in `live_sessions` with the
-- same pool and holder.
-- $1 tenant, $2 pool kind, $3 pool
SELECT s.*, l.session_id IS NOT NULL AS is_live
FROM sessions AS s
LEFT JOIN live_sessions AS l ON l.bucket = substr(s.id, 8, 1) AND l.session_id = s.id
    AND l.tenant_id = s.tenant_id AND l.pool_kind = s.pool_kind AND l.pool_id = s.pool_id AND l.holder = s.holder
WHERE s.tenant_id = $1 AND s.pool_kind = $2 AND s.pool_id = $3

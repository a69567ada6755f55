-- Reads a pool's sessions, live and ended. $1 tenant, $2 pool kind, $3 pool
SELECT * FROM sessions WHERE tenant_id = $1 AND pool_kind = $2 AND pool_id = $3

-- Counts the live sessions of a pool. $1 tenant, $2 pool kind, $3 pool
SELECT COUNT(*) FROM live_sessions WHERE tenant_id = $1 AND pool_kind = $2 AND pool_id = $3

-- Reads the pools whose entitlement changed at $1 or later and before $2: at most $6 pools, ordered by name,
-- after a pool. $3 tenant, $4 pool kind, $5 pool
SELECT DISTINCT tenant_id, pool_kind, pool_id
FROM audit_log
WHERE stream = 'entitlement' AND at >= $1 AND at < $2 AND (tenant_id, pool_kind, pool_id) > ($3, $4, $5)
ORDER BY tenant_id, pool_kind, pool_id
LIMIT $6

-- Reads a pool's records in order, stream by stream: entitlement, node, plan, session.
-- $1 tenant, $2 pool kind, $3 pool
SELECT *
FROM audit_log
WHERE tenant_id = $1 AND pool_kind = $2 AND pool_id = $3
ORDER BY stream, seq

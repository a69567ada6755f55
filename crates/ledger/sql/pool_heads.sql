-- Reads the head of each stream of a pool. $1 tenant, $2 pool kind, $3 pool
SELECT stream, seq FROM audit_heads WHERE tenant_id = $1 AND pool_kind = $2 AND pool_id = $3

-- A pool's records: first its entitlement's, then what nodes decided alone, its plan's, its sessions', each in order.
-- $1 tenant, $2 pool kind, $3 pool
SELECT *
FROM audit_log
WHERE tenant_id = $1 AND pool_kind = $2 AND pool_id = $3
ORDER BY stream, seq

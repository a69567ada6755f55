-- Reads a record of a session stream by number. $1 tenant, $2 pool kind, $3 pool, $4 seq
SELECT at, action, session_id
FROM audit_log
WHERE tenant_id = $1 AND pool_kind = $2 AND pool_id = $3 AND stream = 'session' AND seq = $4

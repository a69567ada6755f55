-- Reads the pools and numbers of the session records with an id after $1.
SELECT tenant_id, pool_kind, pool_id, seq
FROM audit_log
WHERE id > $1 AND stream = 'session'

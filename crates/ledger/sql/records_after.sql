-- The places of the records of sessions that were appended after $1.
SELECT tenant_id, pool_kind, pool_id, seq
FROM audit_log
WHERE id > $1 AND stream = 'session'

-- Reads the admissions to the pools of subscribers.
SELECT id, tenant_id, pool_id, seq FROM audit_log
WHERE pool_kind = 'subscriber' AND stream = 'session' AND action = 'admitted'

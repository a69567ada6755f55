-- Reads the admissions to the pools that have a home. The pool of a group belongs to a screen of a subscriber.
SELECT id, tenant_id, pool_kind, pool_id, seq FROM audit_log
WHERE pool_kind IN ('subscriber', 'license', 'capacity') AND stream = 'session' AND action = 'admitted'

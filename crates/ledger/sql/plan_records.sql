-- Reads the limits granted by a tenant's plans at each version, plan by plan, in order. $1 tenant
SELECT pool_id, limit_seats, limit_version
FROM audit_log
WHERE tenant_id = $1 AND stream = 'plan'
ORDER BY pool_id, seq

-- The sessions of a tenant's capacities that were not over at $2, in no order: also later ones.
-- $1 tenant, $2 the time
SELECT id, tenant_id, pool_id, tier, started_at, expires_at, NULL AS ended_at
FROM sessions
WHERE pool_kind = 'capacity' AND end_reason IS NULL AND tenant_id = $1
UNION ALL
SELECT id, tenant_id, pool_id, tier, started_at, expires_at, ended_at
FROM sessions
WHERE pool_kind = 'capacity' AND end_reason IS NOT NULL AND ended_at > $2 AND tenant_id = $1

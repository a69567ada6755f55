-- The sessions of a tenant's capacities that a span may need, in no order: started before its end, and not
-- over at its start. The tenant is a range for the live ones and an expression for the ended ones: a plain
-- comparison leads to the index of pools, and through all capacities that the tenant ever held.
-- $1 tenant, $2 the span's start, $3 its end
SELECT id, tenant_id, pool_id, tier, started_at, expires_at, NULL AS ended_at
FROM sessions
WHERE pool_kind = 'capacity' AND end_reason IS NULL AND tenant_id BETWEEN $1 AND $1 AND started_at < $3
UNION ALL
SELECT id, tenant_id, pool_id, tier, started_at, expires_at, ended_at
FROM sessions
WHERE pool_kind = 'capacity' AND end_reason IS NOT NULL AND ended_at > $2 AND started_at < $3
  AND COALESCE(tenant_id, '') = $1

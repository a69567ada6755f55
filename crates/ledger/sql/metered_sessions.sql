-- The sessions of capacities that were not over at $1 and started before $2, by tenant, after a place in that
-- order. Two sorted halves, merged: the live ones come from their index as they are; the ended ones are found
-- by their end and sorted, which the expression in their tenant's place demands, or else all sessions there
-- ever were would be walked in their order.
-- $1 and $2 the times, $3 after this tenant and $4 session, $5 how many at most
SELECT id, tenant_id, pool_id, tier, started_at, expires_at, NULL AS ended_at
FROM sessions
WHERE pool_kind = 'capacity' AND end_reason IS NULL AND started_at < $2 AND (tenant_id, id) > ($3, $4)
UNION ALL
SELECT id, COALESCE(tenant_id, '') AS tenant_id, pool_id, tier, started_at, expires_at, ended_at
FROM sessions
WHERE pool_kind = 'capacity' AND end_reason IS NOT NULL AND ended_at > $1 AND started_at < $2
  AND (COALESCE(tenant_id, ''), id) > ($3, $4)
ORDER BY tenant_id, id
LIMIT $5

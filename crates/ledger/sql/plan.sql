-- Reads a tenant's plan. $1 tenant, $2 name
SELECT
    tenant_id, name, device_limit, price_cents, when_full, ttl_seconds, group_members_max, group_scope,
    group_same_content, status, version, created_at, updated_at
FROM plans
WHERE tenant_id = $1 AND name = $2

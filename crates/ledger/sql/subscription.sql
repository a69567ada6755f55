-- Reads a tenant's subscription. $1 tenant, $2 id
SELECT id, tenant_id, user_id, plan, status, starts_at, ends_at, version, created_at, updated_at
FROM subscriptions
WHERE tenant_id = $1 AND id = $2

-- Reads a user's newest subscription. $1 tenant, $2 user
SELECT id, tenant_id, user_id, plan, status, starts_at, ends_at, version, created_at, updated_at
FROM subscriptions
WHERE tenant_id = $1 AND user_id = $2
ORDER BY version DESC
LIMIT 1

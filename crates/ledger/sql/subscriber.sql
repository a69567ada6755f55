-- Reads a user's newest subscription and its plan in one statement. $1 tenant, $2 user
SELECT
    s.status, s.starts_at, s.ends_at, s.version, s.plan,
    plans.device_limit, plans.when_full, plans.ttl_seconds, plans.group_members_max, plans.group_scope,
    plans.group_same_content, plans.version AS plan_version
FROM subscriptions AS s
JOIN plans ON plans.tenant_id = s.tenant_id AND plans.name = s.plan
WHERE s.tenant_id = $1 AND s.user_id = $2
ORDER BY s.version DESC
LIMIT 1

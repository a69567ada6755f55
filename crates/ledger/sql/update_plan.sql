-- Updates a plan. The parameters are those of `create_plan.sql`.
UPDATE plans
SET device_limit = $3, price_cents = $4, when_full = $5, ttl_seconds = $6, status = $7, version = $8, updated_at = $9,
    group_members_max = $10, group_scope = $11, group_same_content = $12
WHERE tenant_id = $1 AND name = $2

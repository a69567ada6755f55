-- Adds a plan. $1 tenant, $2 name, $3 device limit, $4 price in cents, $5 when full, $6 TTL in seconds,
-- $7 status, $8 version, $9 time, $10 most members of a group, $11 scope of groups, $12 members watch the same content
INSERT INTO plans (
    tenant_id, name, device_limit, price_cents, when_full, ttl_seconds, status, version, created_at, updated_at,
    group_members_max, group_scope, group_same_content
)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $9, $10, $11, $12)

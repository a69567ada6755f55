-- Adds a subscription. $1 id, $2 tenant, $3 user, $4 plan, $5 status, $6 starts at, $7 ends at, $8 version, $9 time
INSERT INTO subscriptions (
    id, tenant_id, user_id, plan, status, starts_at, ends_at, version, created_at, updated_at
)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $9)

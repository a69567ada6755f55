-- Updates a subscription. The parameters are those of `create_subscription.sql`.
UPDATE subscriptions
SET plan = $4, status = $5, starts_at = $6, ends_at = $7, version = $8, updated_at = $9
WHERE id = $1 AND tenant_id = $2 AND user_id = $3

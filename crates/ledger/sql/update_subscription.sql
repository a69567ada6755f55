-- Updates a subscription. $1 id, $2 plan, $3 status, $4 starts at, $5 ends at, $6 version, $7 time
UPDATE subscriptions
SET plan = $2, status = $3, starts_at = $4, ends_at = $5, version = $6, updated_at = $7
WHERE id = $1

-- Updates a plan. $1 tenant, $2 name, $3 device limit, $4 price in cents, $5 when full, $6 TTL in seconds, $7
-- status, $8 version, $9 time
UPDATE plans
SET device_limit = $3, price_cents = $4, when_full = $5, ttl_seconds = $6, status = $7, version = $8, updated_at = $9
WHERE tenant_id = $1 AND name = $2

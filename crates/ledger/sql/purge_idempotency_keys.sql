-- Deletes at most $2 of the oldest idempotency keys used before $1.
DELETE FROM idempotency_keys
WHERE (tenant_id, idempotency_key) IN (
    SELECT tenant_id, idempotency_key FROM idempotency_keys WHERE at < $1 ORDER BY at LIMIT $2
)

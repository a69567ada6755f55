-- Reads the kept answer of a write by idempotency key. $1 tenant, $2 idempotency key
SELECT request_hash, entity_kind, entity_id, answer
FROM idempotency_keys
WHERE tenant_id = $1 AND idempotency_key = $2

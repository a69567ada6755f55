-- Reads the newest kept answers of the writes to a pool. $1 tenant, $2 entity kind, $3 pool, $4 number of answers
SELECT idempotency_key, request_hash, entity_id, answer, at
FROM idempotency_keys
WHERE tenant_id = $1 AND entity_kind = $2 AND pool_id = $3
ORDER BY at DESC, idempotency_key
LIMIT $4

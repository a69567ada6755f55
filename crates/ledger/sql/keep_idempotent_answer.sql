-- Keeps the answer of a write for retries. The answer of another region to a key that is kept here already is left out.
-- $1 tenant, $2 idempotency key, $3 request hash, $4 entity kind, $5 entity, $6 pool, $7 answer, $8 time
INSERT INTO idempotency_keys (tenant_id, idempotency_key, request_hash, entity_kind, entity_id, pool_id, answer, at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
ON CONFLICT (tenant_id, idempotency_key) DO NOTHING

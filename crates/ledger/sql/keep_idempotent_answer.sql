-- Keeps the answer of a write for retries.
-- $1 tenant, $2 idempotency key, $3 request hash, $4 entity kind, $5 entity, $6 answer, $7 time
INSERT INTO idempotency_keys (tenant_id, idempotency_key, request_hash, entity_kind, entity_id, answer, at)
VALUES ($1, $2, $3, $4, $5, $6, $7)

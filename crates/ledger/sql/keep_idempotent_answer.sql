-- $1 tenant, $2 idempotency key, $3 request hash, $4 license, $5 answer, $6 time
INSERT INTO idempotency_keys (tenant_id, idempotency_key, request_hash, license_id, answer, at)
VALUES ($1, $2, $3, $4, $5, $6)

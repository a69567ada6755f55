-- Adds a license at version 1. $1 id, $2 tenant, $3 key, $4 seats, $5 status, $6 expires at,
-- $7 counted per, $8 clients, $9 TTL in seconds, $10 contact, $11 time
INSERT INTO licenses (
    id, tenant_id, license_key, max_seats, status, expires_at, count_per, clients, ttl_seconds,
    contact, version, created_at, updated_at
)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, 1, $11, $11)

-- Adds a license. $1 id, $2 tenant, $3 key, $4 seats, $5 status, $6 expires at, $7 counted per, $8 clients,
-- $9 TTL in seconds, $10 grace in seconds, $11 reacquire, $12 contact, $13 version, $14 time
INSERT INTO licenses (
    id, tenant_id, license_key, max_seats, status, expires_at, count_per, clients, ttl_seconds,
    grace_seconds, reacquire, contact, version, created_at, updated_at
)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $14)

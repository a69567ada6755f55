-- Reads a tenant's license by key. $1 tenant, $2 key
SELECT
    id, tenant_id, license_key, max_seats, status, expires_at, count_per, clients, ttl_seconds,
    grace_seconds, reacquire, contact, version, created_at, updated_at
FROM licenses
WHERE tenant_id = $1 AND license_key = $2

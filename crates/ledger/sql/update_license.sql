-- Updates a license to its next version. The parameters are those of `create_license.sql`.
UPDATE licenses
SET max_seats = $4, status = $5, expires_at = $6, count_per = $7, clients = $8, ttl_seconds = $9,
    grace_seconds = $10, reacquire = $11, contact = $12, version = $13, updated_at = $14
WHERE id = $1 AND tenant_id = $2 AND license_key = $3

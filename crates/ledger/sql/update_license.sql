-- Updates a license to its next version. $1 id, $2 seats, $3 status, $4 expires at, $5 counted per, $6 clients,
-- $7 TTL in seconds, $8 grace in seconds, $9 reacquire, $10 contact, $11 version, $12 time
UPDATE licenses
SET max_seats = $2, status = $3, expires_at = $4, count_per = $5, clients = $6, ttl_seconds = $7,
    grace_seconds = $8, reacquire = $9, contact = $10, version = $11, updated_at = $12
WHERE id = $1

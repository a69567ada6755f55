-- Updates a license to its next version. $1 id, $2 seats, $3 status, $4 expires at,
-- $5 counted per, $6 clients, $7 TTL in seconds, $8 contact, $9 version, $10 time
UPDATE licenses
SET max_seats = $2, status = $3, expires_at = $4, count_per = $5, clients = $6, ttl_seconds = $7,
    contact = $8, version = $9, updated_at = $10
WHERE id = $1

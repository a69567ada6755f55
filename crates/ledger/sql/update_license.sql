-- Updates a license to its next version. $1 id, $2 seats, $3 status, $4 expires at, $5 counted per, $6 TTL in
-- seconds, $7 contact, $8 version, $9 time
UPDATE licenses
SET max_seats = $2, status = $3, expires_at = $4, count_per = $5, ttl_seconds = $6, contact = $7,
    version = $8, updated_at = $9
WHERE id = $1

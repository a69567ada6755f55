-- Reads the seats of the newest active licenses. $1 maximum number of licenses
SELECT id, max_seats
FROM licenses
WHERE status = 'active'
ORDER BY id DESC
LIMIT $1

-- The seats of the newest active licenses. $1 how many at most
SELECT id, max_seats
FROM licenses
WHERE status = 'active'
ORDER BY id DESC
LIMIT $1

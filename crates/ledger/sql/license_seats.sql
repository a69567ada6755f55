-- The seats of some licenses. `/* rows */` stands for one group (license) a license.
SELECT id, max_seats
FROM licenses
WHERE id IN (/* rows */)

-- Reads the seats of licenses. `/* rows */` stands for a group (license) per license.
SELECT id, max_seats
FROM licenses
WHERE id IN (/* rows */)

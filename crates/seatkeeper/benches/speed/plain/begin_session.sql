-- Session $1 takes a seat of license $2, if one is free.
INSERT INTO sessions (id, license, last_heartbeat)
SELECT $1, l.id, clock_timestamp()
FROM licenses AS l
WHERE l.id = $2 AND (SELECT count(*) FROM sessions WHERE license = l.id) < l.seats

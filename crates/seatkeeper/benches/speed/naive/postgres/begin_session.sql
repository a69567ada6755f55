-- Starts session $1 of license $2 on machine $3.
INSERT INTO sessions (id, license, machine, started_at) VALUES ($1, $2, $3, clock_timestamp())

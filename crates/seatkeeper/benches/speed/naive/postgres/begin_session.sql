INSERT INTO sessions (id, license, machine, started_at) VALUES ($1, $2, $3, clock_timestamp())

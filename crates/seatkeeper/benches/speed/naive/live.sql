SELECT count(*) FROM sessions WHERE license = $1 AND ended_at IS NULL

-- Counts the live sessions of license $1.
SELECT count(*) FROM sessions WHERE license = $1 AND ended_at IS NULL

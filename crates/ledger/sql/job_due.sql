-- Reads the values that decide when a job can be taken. $1 name
SELECT name, interval_ms, next_run_at, retry_at, locked_until, fencing_token FROM jobs WHERE name = $1

-- What the time of a job's next run depends on. $1 name
SELECT interval_ms, next_run_at, retry_at, failures FROM jobs WHERE name = $1

-- Reads the values needed to schedule a job's next run. $1 name
SELECT interval_ms, next_run_at, retry_at, failures FROM jobs WHERE name = $1

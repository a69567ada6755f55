-- Reads the values that decide when each job can be taken.
SELECT name, interval_ms, next_run_at, retry_at, locked_until, fencing_token FROM jobs

-- Reads all jobs, ordered by name.
SELECT
    name, interval_ms, next_run_at, retry_at, last_run_at, locked_by, locked_at, fencing_token,
    failures, last_error
FROM jobs
ORDER BY name

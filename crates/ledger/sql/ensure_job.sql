-- Adds a job, or updates the interval of an existing job. With a new interval the next run is no later than
-- the first run of a new job. $1 name, $2 interval in ms, $3 first run at
INSERT INTO jobs (name, interval_ms, next_run_at, fencing_token, failures)
VALUES ($1, $2, $3, 0, 0)
ON CONFLICT (name) DO UPDATE
SET interval_ms = excluded.interval_ms,
    next_run_at = CASE
        WHEN excluded.next_run_at < jobs.next_run_at THEN excluded.next_run_at
        ELSE jobs.next_run_at
    END
WHERE jobs.interval_ms <> excluded.interval_ms

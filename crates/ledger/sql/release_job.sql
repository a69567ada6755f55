-- Releases a job's lock held by the transaction, and sets the next due time.
-- $1 name, $2 next run at, $3 retry at, $4 failures, $5 last error
UPDATE jobs
SET next_run_at = $2, retry_at = $3, failures = $4, last_error = $5,
    locked_by = NULL, locked_at = NULL, locked_until = NULL
WHERE name = $1

-- Takes a job whose last run and lock are still the ones read before. Of concurrent workers, exactly one succeeds. A run
-- losing its lock counts as a failure. `retry_at` is cleared, so a later request leads to a further run.
-- $1 name, $2 now, $3 worker, $4 locked until, $5 fencing token read, $6 end of the lock read
UPDATE jobs
SET fencing_token = fencing_token + 1,
    failures = CASE WHEN locked_by IS NULL THEN failures ELSE failures + 1 END,
    locked_by = $3,
    locked_at = $2,
    locked_until = $4,
    last_run_at = $2,
    retry_at = NULL
WHERE name = $1 AND fencing_token = $5 AND locked_until IS NOT DISTINCT FROM $6
RETURNING fencing_token, next_run_at

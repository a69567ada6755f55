-- The time from which on each job can be taken: when it is due and nobody's, or when its lock is stale.
SELECT name, CASE WHEN locked_by IS NULL THEN COALESCE(retry_at, next_run_at) ELSE locked_until END AS due_at
FROM jobs

-- Reads the time from which each job can be taken: the due time of an unlocked job, or the end of the lock.
SELECT name, CASE WHEN locked_by IS NULL THEN COALESCE(retry_at, next_run_at) ELSE locked_until END AS due_at
FROM jobs

-- Returns 1 if a job can be taken: due and unlocked, or locked with a stale lock. $1 name, $2 now
SELECT COUNT(*)
FROM jobs
WHERE name = $1
  AND ((locked_by IS NULL AND COALESCE(retry_at, next_run_at) <= $2) OR locked_until <= $2)

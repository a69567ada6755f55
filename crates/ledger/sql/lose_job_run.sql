-- Closes the run before this one, if it never ended itself, and tells whose it was.
-- $1 job, $2 this run's fencing token, $3 now
UPDATE job_runs
SET outcome = 'lost', finished_at = $3
WHERE job = $1 AND fencing_token = $2 - 1 AND outcome = 'running'
RETURNING worker

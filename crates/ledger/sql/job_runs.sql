-- Reads a job's runs, newest first, before a fencing token.
-- $1 job, $2 fencing token, $3 maximum number of runs
SELECT fencing_token, worker, scheduled_at, started_at, finished_at, outcome, error
FROM job_runs
WHERE job = $1 AND fencing_token < $2
ORDER BY fencing_token DESC
LIMIT $3

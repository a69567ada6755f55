-- A job's runs, the newest first. $1 job, $2 only those before this fencing token, $3 how many
SELECT fencing_token, worker, scheduled_at, started_at, finished_at, outcome, error
FROM job_runs
WHERE job = $1 AND fencing_token < $2
ORDER BY fencing_token DESC
LIMIT $3

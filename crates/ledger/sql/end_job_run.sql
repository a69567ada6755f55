-- Records the end of a run. $1 job, $2 fencing token, $3 now, $4 outcome, $5 error
UPDATE job_runs
SET finished_at = $3, outcome = $4, error = $5
WHERE job = $1 AND fencing_token = $2

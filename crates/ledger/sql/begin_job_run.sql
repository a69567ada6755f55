-- Records the start of a run. $1 job, $2 fencing token, $3 worker, $4 scheduled at, $5 started at
INSERT INTO job_runs (job, fencing_token, worker, scheduled_at, started_at, outcome)
VALUES ($1, $2, $3, $4, $5, 'running')

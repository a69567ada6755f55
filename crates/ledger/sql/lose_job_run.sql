-- Ends the run before a run as lost if the earlier run is still running, and returns its worker.
-- $1 job, $2 fencing token of the later run, $3 now
UPDATE job_runs
SET outcome = 'lost', finished_at = $3
WHERE job = $1 AND fencing_token = $2 - 1 AND outcome = 'running'
RETURNING worker

-- Deletes at most $4 finished runs, oldest first per job. The last $2 runs of a job always stay. Of the
-- earlier runs, runs finished before $1 and runs outside the last $3 go.
DELETE FROM job_runs
WHERE (job, fencing_token) IN (
    SELECT r.job, r.fencing_token
    FROM jobs AS j
    JOIN job_runs AS r ON r.job = j.name AND r.fencing_token <= j.fencing_token - $2
    WHERE r.finished_at < $1
       OR (r.finished_at IS NOT NULL AND r.fencing_token <= j.fencing_token - $3)
    ORDER BY r.job, r.fencing_token
    LIMIT $4
)

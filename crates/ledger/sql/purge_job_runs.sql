-- Deletes at most $4 of the oldest runs that have finished: those from before $1, but none of the last
-- $2 of their job, and all that are not among its last $3.
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

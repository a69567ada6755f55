-- Touches the job's row if the run with this token still has its lock, and changes nothing of it: where
-- writers are many, the row is then this transaction's, and nobody takes the job before it commits.
-- $1 name, $2 fencing token
UPDATE jobs
SET fencing_token = fencing_token
WHERE name = $1 AND fencing_token = $2 AND locked_by IS NOT NULL

-- Locks the job's row if the run with the fencing token holds the job's lock. The update changes no value:
-- the row lock keeps concurrent workers from taking the job before the transaction commits.
-- $1 name, $2 fencing token
UPDATE jobs
SET fencing_token = fencing_token
WHERE name = $1 AND fencing_token = $2 AND locked_by IS NOT NULL

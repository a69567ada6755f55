-- Extends a job's lock held by the transaction. $1 name, $2 now, $3 locked until
UPDATE jobs SET locked_at = $2, locked_until = $3 WHERE name = $1

-- Deletes at most $2 of the oldest records of nodes alone dated before $1.
DELETE FROM audit_log
WHERE id IN (
    SELECT id FROM audit_log WHERE stream = 'node' AND at < $1 ORDER BY at, id LIMIT $2
)

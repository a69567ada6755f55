-- Deletes the oldest records of what nodes decided alone, at most $2 of them. $1 the time before which
DELETE FROM audit_log
WHERE id IN (
    SELECT id FROM audit_log WHERE stream = 'node' AND at < $1 ORDER BY at, id LIMIT $2
)

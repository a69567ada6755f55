-- Deletes at most $2 of the oldest records of nodes alone dated before $1. `id > 0` is true of every row, and leads to the
-- partial index `audit_log_of_nodes_by_time`.
DELETE FROM audit_log
WHERE id IN (
    SELECT id FROM audit_log WHERE stream = 'node' AND id > 0 AND at < $1 ORDER BY at, id LIMIT $2
)

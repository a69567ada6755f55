-- Finds at most $2 of the oldest records of session streams to purge, and returns the new cut of each of
-- their pools. Records up to a pool's old cut are gone or kept on purpose. `id > 0` is true of every row, and leads to
-- the partial index `audit_log_of_sessions_by_time`.
-- $1 time limit of the records, $3 additional time limit for capacities
SELECT tenant_id, pool_kind, pool_id, MAX(seq) AS seq, COUNT(*) AS records
FROM (
    SELECT a.tenant_id, a.pool_kind, a.pool_id, a.seq
    FROM audit_log AS a
    LEFT JOIN audit_cuts AS c
        ON c.tenant_id = a.tenant_id AND c.pool_kind = a.pool_kind AND c.pool_id = a.pool_id
    WHERE a.at < $1 AND a.stream = 'session' AND a.id > 0 AND (c.seq IS NULL OR a.seq > c.seq)
      AND (a.pool_kind <> 'capacity' OR a.at < $3)
    ORDER BY a.at, a.id
    LIMIT $2
) AS oldest
GROUP BY tenant_id, pool_kind, pool_id

-- The oldest records of sessions that may go, at most $2 of them, as the new cut of each of their
-- pools. Records up to a pool's cut are either gone or kept on purpose. $1 the time before which; $3
-- besides, for capacities
SELECT tenant_id, pool_kind, pool_id, MAX(seq) AS seq, COUNT(*) AS records
FROM (
    SELECT a.tenant_id, a.pool_kind, a.pool_id, a.seq
    FROM audit_log AS a
    LEFT JOIN audit_cuts AS c
        ON c.tenant_id = a.tenant_id AND c.pool_kind = a.pool_kind AND c.pool_id = a.pool_id
    WHERE a.at < $1 AND a.stream = 'session' AND (c.seq IS NULL OR a.seq > c.seq)
      AND (a.pool_kind <> 'capacity' OR a.at < $3)
    ORDER BY a.at, a.id
    LIMIT $2
) AS oldest
GROUP BY tenant_id, pool_kind, pool_id

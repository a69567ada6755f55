-- The number of a pool's last event, also where retention has deleted it.
-- $1 tenant, $2 pool kind, $3 pool
--
-- The last is asked for in the order of all streams: see `missing_place.sql`.
SELECT COALESCE(MAX(seq), 0)
FROM (
    SELECT seq FROM (
        SELECT tenant_id, pool_kind, pool_id, stream, seq FROM audit_log
        WHERE (tenant_id, pool_kind, pool_id, stream, seq) <= ($1, $2, $3, 'session', 9223372036854775807)
        ORDER BY tenant_id DESC, pool_kind DESC, pool_id DESC, stream DESC, seq DESC
        LIMIT 1
    ) AS last
    WHERE last.tenant_id = $1 AND last.pool_kind = $2 AND last.pool_id = $3 AND last.stream = 'session'
    UNION ALL
    SELECT seq FROM audit_cuts WHERE tenant_id = $1 AND pool_kind = $2 AND pool_id = $3
) AS latest

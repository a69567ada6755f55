-- What stands on record at one place of a session stream.
-- $1 tenant, $2 pool kind, $3 pool, $4 seq
--
-- The place is asked for in the order of all streams: see `missing_place.sql`.
SELECT at, action, session_id
FROM (
    SELECT * FROM audit_log
    WHERE (tenant_id, pool_kind, pool_id, stream, seq) <= ($1, $2, $3, 'session', $4)
    ORDER BY tenant_id DESC, pool_kind DESC, pool_id DESC, stream DESC, seq DESC
    LIMIT 1
) AS last
WHERE tenant_id = $1 AND pool_kind = $2 AND pool_id = $3 AND stream = 'session' AND seq = $4

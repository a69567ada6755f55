-- The live sessions of one bucket, pool by pool, as in `live_sessions.sql`. A session's id says its bucket. The
-- number of the last event is asked for in the order of all streams: see `missing_place.sql`.
-- $1 bucket, as the one byte of the id
SELECT
    s.id, s.tenant_id, s.pool_kind, s.pool_id, s.holder, s.user_id, s.tier, s.started_at,
    s.last_heartbeat_at, s.ttl_ms,
    (SELECT last.seq FROM (
        SELECT tenant_id, pool_kind, pool_id, stream, seq FROM audit_log
        WHERE (tenant_id, pool_kind, pool_id, stream, seq)
            <= (s.tenant_id, s.pool_kind, s.pool_id, 'session', 9223372036854775807)
        ORDER BY tenant_id DESC, pool_kind DESC, pool_id DESC, stream DESC, seq DESC
        LIMIT 1
     ) AS last
     WHERE last.tenant_id = s.tenant_id AND last.pool_kind = s.pool_kind AND last.pool_id = s.pool_id
       AND last.stream = 'session') AS seq,
    (SELECT seq FROM audit_cuts AS c
     WHERE c.tenant_id = s.tenant_id AND c.pool_kind = s.pool_kind AND c.pool_id = s.pool_id) AS cut_seq
FROM sessions AS s
WHERE s.ended_at IS NULL AND substr(s.id, 8, 1) = $1
ORDER BY s.tenant_id, s.pool_kind, s.pool_id, s.holder

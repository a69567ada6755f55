-- Reads the live sessions of capacities, grouped by pool; columns as in `live_sessions.sql`.
SELECT
    s.id, s.tenant_id, s.pool_kind, s.pool_id, s.holder, s.user_id, s.tier, s.started_at,
    s.last_heartbeat_at, s.ttl_ms,
    (SELECT MAX(seq) FROM audit_log AS a
     WHERE a.tenant_id = l.tenant_id AND a.pool_kind = l.pool_kind AND a.pool_id = l.pool_id
       AND a.stream = 'session') AS seq,
    (SELECT seq FROM audit_cuts AS c
     WHERE c.tenant_id = l.tenant_id AND c.pool_kind = l.pool_kind AND c.pool_id = l.pool_id) AS cut_seq
FROM live_sessions AS l
JOIN sessions AS s ON s.id = l.session_id
WHERE l.pool_kind = 'capacity'
ORDER BY l.tenant_id, l.pool_kind, l.pool_id, l.holder

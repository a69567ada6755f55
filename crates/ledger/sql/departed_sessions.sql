-- Reads the sessions of a pool that ended here to go on in another region, by records after a number.
-- $1 tenant, $2 pool kind, $3 pool, $4 number
SELECT
    s.id, s.tenant_id, s.pool_kind, s.pool_id, s.holder, s.user_id, s.tier, s.started_at, s.last_heartbeat_at, s.ttl_ms,
    s.expires_at, s.ended_at, s.end_reason, s.ip, s.user_agent, s.metadata, s.device_type, s.device_name
FROM audit_log AS a
JOIN sessions AS s ON s.id = a.session_id
WHERE a.tenant_id = $1 AND a.pool_kind = $2 AND a.pool_id = $3 AND a.stream = 'session' AND a.seq > $4
  AND a.action = 'ended' AND a.reason = 'moved'
ORDER BY a.seq

-- Reads at most $4 live sessions of a pool. $1 tenant, $2 pool kind, $3 pool
SELECT
    s.id, s.tenant_id, s.pool_kind, s.pool_id, s.holder, s.user_id, s.tier, s.started_at, s.last_heartbeat_at, s.ttl_ms,
    s.expires_at, s.ended_at, s.end_reason, s.ip, s.user_agent, s.metadata, s.device_type, s.device_name
FROM live_sessions AS l
JOIN sessions AS s ON s.id = l.session_id
WHERE l.tenant_id = $1 AND l.pool_kind = $2 AND l.pool_id = $3
LIMIT $4

-- Reads a session, live or ended. $1 session id
SELECT
    id, tenant_id, pool_kind, pool_id, holder, user_id, tier, started_at, last_heartbeat_at, ttl_ms,
    expires_at, ended_at, end_reason, ip, user_agent, metadata, device_type,
    device_name
FROM sessions
WHERE id = $1

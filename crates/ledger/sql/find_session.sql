-- Reads a session, live or ended, with 1 in `is_alone` if a node admitted the session alone. $1 session id
SELECT
    id, tenant_id, pool_kind, pool_id, holder, user_id, tier, started_at, last_heartbeat_at, ttl_ms,
    expires_at, ended_at, end_reason, ip, user_agent, metadata, device_type, device_name, CAST(0 AS BIGINT) AS is_alone
FROM sessions
WHERE id = $1
UNION ALL
SELECT
    a.session_id, a.tenant_id, a.pool_kind, a.pool_id, a.holder, a.user_id, a.tier, a.at,
    COALESCE(e.last_heartbeat_at, a.last_heartbeat_at), a.ttl_ms,
    COALESCE(e.expires_at, a.expires_at), e.at, e.reason,
    a.ip, a.user_agent, a.metadata, a.device_type, a.device_name, CAST(1 AS BIGINT)
FROM audit_log AS a
LEFT JOIN audit_log AS e ON e.session_id = a.session_id AND e.action = 'ended_alone'
WHERE a.session_id = $1 AND a.action = 'admitted_alone'

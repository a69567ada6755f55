-- A session that a node admitted alone, and its end where that node told of one. $1 session id
SELECT
    a.session_id AS id, a.tenant_id, a.pool_kind, a.pool_id, a.holder, a.user_id, a.tier, a.at AS started_at,
    COALESCE(e.last_heartbeat_at, a.last_heartbeat_at) AS last_heartbeat_at, a.ttl_ms,
    COALESCE(e.expires_at, a.expires_at) AS expires_at, e.at AS ended_at, e.reason AS end_reason,
    a.ip, a.user_agent, a.metadata, a.device_type, a.device_name
FROM audit_log AS a
LEFT JOIN audit_log AS e ON e.session_id = a.session_id AND e.action = 'ended_alone'
WHERE a.session_id = $1 AND a.action = 'admitted_alone'

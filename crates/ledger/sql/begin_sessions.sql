-- Adds the sessions that began in this batch, the records after $1. One that also ended in it is
-- added as ended, so that its holder may be back in the same batch.
--
-- Two conditions that are always true are there for PostgreSQL's planner: without `e.session_id IS NOT NULL` it does not
-- see that the index of sessions will do, and the upper bound tells it, as it often has no statistics of a young
-- table, that few records are meant.
INSERT INTO sessions (
    id, tenant_id, pool_kind, pool_id, holder, user_id, tier, started_at, last_heartbeat_at, ttl_ms,
    expires_at, ended_at, end_reason, ip, user_agent, metadata, device_type, device_name
)
SELECT
    a.session_id, a.tenant_id, a.pool_kind, a.pool_id, a.holder, a.user_id, a.tier, a.at,
    COALESCE(e.last_heartbeat_at, a.last_heartbeat_at), a.ttl_ms,
    COALESCE(e.expires_at, a.expires_at), e.at, e.reason, a.ip, a.user_agent, a.metadata,
    a.device_type, a.device_name
FROM audit_log AS a
LEFT JOIN audit_log AS e ON e.session_id = a.session_id AND e.session_id IS NOT NULL AND e.action = 'ended'
WHERE a.id > $1 AND a.id <= 9223372036854775807 AND a.action = 'admitted'
ON CONFLICT (id) DO NOTHING

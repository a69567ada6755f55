-- Adds the sessions begun in a batch: the records after $1. A session begun and ended in one batch is added
-- as ended, so the holder may return in the same batch.
--
-- Two conditions are always true and help PostgreSQL's planner. `e.session_id IS NOT NULL` lets the planner
-- use the partial index by session. The upper bound of `a.id` lets the planner expect few records while a
-- young table has no statistics.
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

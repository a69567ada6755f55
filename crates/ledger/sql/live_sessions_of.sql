-- A pool's live sessions, at most $4 of them. $1 tenant, $2 pool kind, $3 pool
SELECT
    id, tenant_id, pool_kind, pool_id, holder, user_id, tier, started_at, last_heartbeat_at, ttl_ms,
    expires_at, ended_at, end_reason, ip, user_agent, metadata, device_type, device_name
FROM sessions
WHERE tenant_id = $1 AND pool_kind = $2 AND pool_id = $3 AND ended_at IS NULL
LIMIT $4

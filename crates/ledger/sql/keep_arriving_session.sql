-- Keeps a session of a lost region's pool until the pool opens here. $1 tenant, $2 pool kind, $3 pool, $4 session, $5 record,
-- $6 last heartbeat, $7 lost region
INSERT INTO arriving_sessions (tenant_id, pool_kind, pool_id, session_id, record, last_heartbeat_at, lost)
VALUES ($1, $2, $3, $4, $5, $6, $7)
ON CONFLICT (session_id) DO NOTHING

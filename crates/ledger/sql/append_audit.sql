-- Appends records. A record whose number is taken is skipped, so appending is idempotent.
-- `/* rows */` stands for a group of 29 values per record, in the order of the columns.
INSERT INTO audit_log (
    at, tenant_id, pool_kind, pool_id, stream, seq, epoch, action, session_id, holder, actor,
    request_id, reason, limit_seats, limit_version, live, count, folded, user_id, tier, ip,
    user_agent, metadata, device_type, device_name, ttl_ms, last_heartbeat_at, expires_at, detail
)
VALUES /* rows */
ON CONFLICT (tenant_id, pool_kind, pool_id, stream, seq) DO NOTHING

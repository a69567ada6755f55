-- Reads a tenant's capacity sessions started before the end of a span and not over at its start, in no order.
--
-- For live sessions the tenant is a range, and for ended sessions an expression. A plain comparison would
-- make the planner choose indexes by tenant and scan the tenant's whole history.
-- $1 tenant, $2 start of the span, $3 end of the span
SELECT s.id, s.tenant_id, s.pool_id, s.tier, s.started_at, s.expires_at, NULL AS ended_at
FROM live_sessions AS l
JOIN sessions AS s ON s.id = l.session_id
WHERE l.tenant_id BETWEEN $1 AND $1 AND l.pool_kind = 'capacity' AND s.started_at < $3
UNION ALL
SELECT s.id, s.tenant_id, s.pool_id, s.tier, s.started_at, s.expires_at, s.ended_at
FROM audit_log AS e
JOIN sessions AS s ON s.id = e.session_id
WHERE e.pool_kind = 'capacity' AND e.action = 'ended' AND e.at > $2 AND s.started_at < $3
  AND COALESCE(e.tenant_id, '') = $1

-- The sessions of a tenant's capacities that a span may need, in no order: started before its end, and not
-- over at its start. The tenant is a range for the live ones and an expression for the ended ones: a plain
-- comparison leads to other indexes, and through all that the tenant ever had.
-- $1 tenant, $2 the span's start, $3 its end
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

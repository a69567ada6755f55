-- The sessions of capacities that were not over at $1 and started before $2, by tenant, after a place in that
-- order. Two sorted halves, merged: the live ones come from their index as they are; the ended ones are found
-- by their end's record and sorted, which the expression in their tenant's place demands, or else all sessions
-- there ever were would be walked in their order.
-- $1 and $2 the times, $3 after this tenant and $4 session, $5 how many at most
SELECT l.session_id AS id, l.tenant_id AS tenant_id, s.pool_id, s.tier, s.started_at, s.expires_at, NULL AS ended_at
FROM live_sessions AS l
JOIN sessions AS s ON s.id = l.session_id
WHERE l.pool_kind = 'capacity' AND (l.tenant_id, l.session_id) > ($3, $4) AND s.started_at < $2
UNION ALL
SELECT
    e.session_id AS id, COALESCE(e.tenant_id, '') AS tenant_id, s.pool_id, s.tier, s.started_at, s.expires_at, s.ended_at
FROM audit_log AS e
JOIN sessions AS s ON s.id = e.session_id
WHERE e.pool_kind = 'capacity' AND e.action = 'ended' AND e.at > $1 AND s.started_at < $2
  AND (COALESCE(e.tenant_id, ''), e.session_id) > ($3, $4)
ORDER BY tenant_id, id
LIMIT $5

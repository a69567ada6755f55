-- Reads the capacity sessions not over at $1 and started before $2, ordered by tenant and id, after a
-- position.
--
-- The query merges two sorted halves. Live sessions come sorted from their index. Ended sessions are found by
-- the records of their ends and sorted afterwards: `COALESCE(e.tenant_id, '')` keeps the planner from
-- scanning every session on record in index order.
-- $1 start of the window, $2 end of the window, $3 tenant and $4 session of the position, $5 maximum number
-- of sessions
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

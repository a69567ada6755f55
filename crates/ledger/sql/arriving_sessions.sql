-- Reads a page of the kept sessions of a lost region's pool that were never admitted here, newest heartbeats first.
-- $1 tenant, $2 pool kind, $3 pool, $4 most sessions, $5 and $6 last heartbeat and id of the last session before the page
SELECT k.record FROM arriving_sessions AS k
WHERE k.tenant_id = $1 AND k.pool_kind = $2 AND k.pool_id = $3
  AND (k.last_heartbeat_at, k.session_id) < ($5, $6)
  AND NOT EXISTS (SELECT 1 FROM sessions AS s WHERE s.id = k.session_id)
  AND NOT EXISTS (SELECT 1 FROM audit_log AS a WHERE a.session_id = k.session_id AND a.action = 'admitted_alone')
ORDER BY k.last_heartbeat_at DESC, k.session_id DESC
LIMIT $4

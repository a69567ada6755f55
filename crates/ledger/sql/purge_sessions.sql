-- Deletes a pool's sessions that ended up to its cut.
-- $1 tenant, $2 pool kind, $3 pool, $4 seq of the cut
DELETE FROM sessions
WHERE id IN (
    SELECT session_id
    FROM audit_log
    WHERE tenant_id = $1 AND pool_kind = $2 AND pool_id = $3 AND stream = 'session' AND seq <= $4
      AND action = 'ended'
)

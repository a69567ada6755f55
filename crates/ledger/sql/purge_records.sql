-- Deletes a pool's records up to its cut, except for the admissions of sessions live at the cut.
-- `purge_sessions.sql` runs first, so exactly the sessions live at the cut still have a row in `sessions`.
-- $1 tenant, $2 pool kind, $3 pool, $4 seq of the cut
DELETE FROM audit_log
WHERE tenant_id = $1 AND pool_kind = $2 AND pool_id = $3 AND stream = 'session' AND seq <= $4
  AND NOT (
      action = 'admitted'
      AND EXISTS (SELECT 1 FROM sessions AS s WHERE s.id = audit_log.session_id)
  )

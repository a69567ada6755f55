-- Reads the number of a pool's last event, even if retention has deleted the event's record.
-- $1 tenant, $2 pool kind, $3 pool
SELECT COALESCE(MAX(seq), 0)
FROM (
    SELECT MAX(seq) AS seq FROM audit_log
    WHERE tenant_id = $1 AND pool_kind = $2 AND pool_id = $3 AND stream = 'session'
    UNION ALL
    SELECT seq FROM audit_cuts WHERE tenant_id = $1 AND pool_kind = $2 AND pool_id = $3
) AS latest

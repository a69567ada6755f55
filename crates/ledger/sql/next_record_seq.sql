-- Reads the next number of a stream that retention never cuts. PostgreSQL does not see the stream while planning, and
-- so cannot choose the index on all entitlements for the numbers of one pool.
-- $1 tenant, $2 pool kind, $3 pool, $4 stream
SELECT COALESCE(MAX(seq), 0) + 1
FROM audit_log
WHERE tenant_id = $1 AND pool_kind = $2 AND pool_id = $3 AND stream = (SELECT CAST($4 AS TEXT))

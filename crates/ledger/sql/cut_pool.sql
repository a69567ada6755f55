-- Records the cut of a pool's session stream, and the number of sessions live at the cut.
-- $1 tenant, $2 pool kind, $3 pool, $4 seq of the cut
INSERT INTO audit_cuts (tenant_id, pool_kind, pool_id, seq, live)
SELECT tenant_id, pool_kind, pool_id, seq, live
FROM audit_log
WHERE tenant_id = $1 AND pool_kind = $2 AND pool_id = $3 AND stream = 'session' AND seq = $4
ON CONFLICT (tenant_id, pool_kind, pool_id) DO UPDATE SET seq = excluded.seq, live = excluded.live

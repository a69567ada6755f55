-- Places in this region the subscribers of a page with a history here and without a home. $1 tenant, $2 the user before the
-- page, $3 last user of the page, $4 this region, $5 time
INSERT INTO homes (tenant_id, user_id, region, version, state, since)
SELECT DISTINCT tenant_id, pool_id, $4, 1, 'here', $5
FROM audit_log
WHERE tenant_id = $1 AND pool_kind = 'subscriber' AND pool_id > $2 AND pool_id <= $3
ON CONFLICT (tenant_id, user_id) DO NOTHING

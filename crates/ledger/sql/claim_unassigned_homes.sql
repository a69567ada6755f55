-- Places in this region every subscriber with a live session, an active subscription or a deleted history here, and without
-- a home. $1 this region, $2 time
INSERT INTO homes (tenant_id, user_id, region, version, state, since)
SELECT tenant_id, user_id, $1, 1, 'here', $2
FROM (
    SELECT tenant_id, pool_id AS user_id FROM live_sessions WHERE pool_kind = 'subscriber'
    UNION
    SELECT tenant_id, user_id FROM subscriptions WHERE status = 'active'
    UNION
    SELECT tenant_id, pool_id FROM audit_cuts WHERE pool_kind = 'subscriber'
) AS known
WHERE true
ON CONFLICT (tenant_id, user_id) DO NOTHING

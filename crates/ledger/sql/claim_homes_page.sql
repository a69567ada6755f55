-- Places in this region the subscribers of a page without a home: every subscriber with an audit record, a deleted history, a
-- live session or an active subscription here. $1 tenant, $2 the user before the page, $3 last user of the page, $4 this
-- region, $5 time
INSERT INTO homes (tenant_id, user_id, region, version, state, since)
SELECT $1, known.user_id, $4, 1, 'here', $5
FROM (
    SELECT pool_id AS user_id FROM audit_log
    WHERE tenant_id = $1 AND pool_kind = 'subscriber' AND pool_id > $2 AND pool_id <= $3
    UNION
    SELECT pool_id FROM audit_cuts
    WHERE tenant_id = $1 AND pool_kind = 'subscriber' AND pool_id > $2 AND pool_id <= $3
    UNION
    SELECT pool_id FROM sessions
    WHERE tenant_id = $1 AND pool_kind = 'subscriber' AND ended_at IS NULL AND pool_id > $2 AND pool_id <= $3
    UNION
    SELECT user_id FROM subscriptions
    WHERE tenant_id = $1 AND status = 'active' AND user_id > $2 AND user_id <= $3
) AS known
WHERE true
ON CONFLICT (tenant_id, user_id) DO NOTHING

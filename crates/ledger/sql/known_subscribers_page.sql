-- Reads the last subscriber of a page of subscribers with an audit record, a deleted history, a live session or an active
-- subscription. Each source is read for a page at most. $1 tenant, $2 the user before the page, $3 subscribers of a page
SELECT MAX(page.user_id)
FROM (
    SELECT known.user_id
    FROM (
        SELECT audited.user_id FROM (
            SELECT DISTINCT pool_id AS user_id FROM audit_log
            WHERE tenant_id = $1 AND pool_kind = 'subscriber' AND pool_id > $2
            ORDER BY pool_id LIMIT $3
        ) AS audited
        UNION
        SELECT cut.user_id FROM (
            SELECT pool_id AS user_id FROM audit_cuts
            WHERE tenant_id = $1 AND pool_kind = 'subscriber' AND pool_id > $2
            ORDER BY pool_id LIMIT $3
        ) AS cut
        UNION
        SELECT live.user_id FROM (
            SELECT DISTINCT pool_id AS user_id FROM sessions
            WHERE tenant_id = $1 AND pool_kind = 'subscriber' AND ended_at IS NULL AND pool_id > $2
            ORDER BY pool_id LIMIT $3
        ) AS live
        UNION
        SELECT subscribed.user_id FROM (
            SELECT user_id FROM subscriptions
            WHERE tenant_id = $1 AND status = 'active' AND user_id > $2
            ORDER BY user_id LIMIT $3
        ) AS subscribed
    ) AS known
    ORDER BY known.user_id
    LIMIT $3
) AS page

-- Assigns a home to a subscriber without a home (compare-and-swap): the first insert wins. A subscriber whose history or
-- subscription stands in this ledger is at home here, in $4.
-- $1 tenant, $2 user, $3 region of the first request, $4 region of this ledger, $5 time
INSERT INTO homes (tenant_id, user_id, region, version, state, since)
SELECT $1, $2,
    CASE
        WHEN EXISTS (
            SELECT 1 FROM audit_log WHERE tenant_id = $1 AND pool_kind = 'subscriber' AND pool_id = $2
        ) OR EXISTS (
            SELECT 1 FROM audit_cuts WHERE tenant_id = $1 AND pool_kind = 'subscriber' AND pool_id = $2
        ) OR EXISTS (
            SELECT 1 FROM subscriptions WHERE tenant_id = $1 AND user_id = $2
        ) THEN $4
        ELSE $3
    END,
    1, 'here', $5
WHERE true
ON CONFLICT (tenant_id, user_id) DO NOTHING

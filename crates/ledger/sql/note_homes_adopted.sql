-- Records the adoption of the homes of a page of a lost region, without a number from the restored ledger.
-- The range of rows leads PostgreSQL to index `homes_in_region`, and past the rows of earlier pages. $1 lost region, $2 time,
-- $3 tenant and $4 user of the first home of the page, $5 tenant and $6 user of the last
INSERT INTO home_moves (tenant_id, user_id, version, direction, peer, seq, peer_seq, at)
SELECT
    tenant_id, user_id, version + 1, 'adopted', $1,
    COALESCE((
        SELECT MAX(latest.seq) FROM (
            SELECT a.seq FROM audit_log AS a
            WHERE a.tenant_id = homes.tenant_id AND a.pool_kind = 'subscriber' AND a.pool_id = homes.user_id
              AND a.stream = 'session'
            UNION ALL
            SELECT c.seq FROM audit_cuts AS c
            WHERE c.tenant_id = homes.tenant_id AND c.pool_kind = 'subscriber' AND c.pool_id = homes.user_id
        ) AS latest
    ), 0),
    NULL, $2
FROM homes
WHERE (region, tenant_id, user_id) >= ($1, $3, $4) AND (region, tenant_id, user_id) <= ($1, $5, $6)
ON CONFLICT (tenant_id, user_id, version, direction) DO NOTHING

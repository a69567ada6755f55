-- Records the adoption of the homes of a page of a lost region, without a number from the restored ledger.
-- $1 lost region, $2 time, $3 tenant and $4 user of the last home of the page
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
WHERE region = $1 AND (tenant_id, user_id) <= ($3, $4)
ON CONFLICT (tenant_id, user_id, version, direction) DO NOTHING

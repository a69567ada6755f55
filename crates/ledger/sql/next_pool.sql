-- Reads the first pool after a pool in the order of names, with its cut.
-- $1 tenant, $2 pool kind, $3 pool
SELECT p.tenant_id, p.pool_kind, p.pool_id, c.seq AS cut_seq, c.live AS cut_live
FROM (
    SELECT * FROM (
        SELECT tenant_id, pool_kind, pool_id FROM audit_log
        WHERE (tenant_id, pool_kind, pool_id) > ($1, $2, $3)
        ORDER BY tenant_id, pool_kind, pool_id LIMIT 1
    ) AS recorded
    UNION
    SELECT * FROM (
        SELECT tenant_id, pool_kind, pool_id FROM sessions
        WHERE (tenant_id, pool_kind, pool_id) > ($1, $2, $3)
        ORDER BY tenant_id, pool_kind, pool_id LIMIT 1
    ) AS held
    UNION
    SELECT * FROM (
        SELECT tenant_id, pool_kind, pool_id FROM audit_cuts
        WHERE (tenant_id, pool_kind, pool_id) > ($1, $2, $3)
        ORDER BY tenant_id, pool_kind, pool_id LIMIT 1
    ) AS cut
    UNION
    SELECT * FROM (
        SELECT tenant_id, pool_kind, pool_id FROM audit_heads
        WHERE (tenant_id, pool_kind, pool_id) > ($1, $2, $3)
        ORDER BY tenant_id, pool_kind, pool_id LIMIT 1
    ) AS headed
) AS p
LEFT JOIN audit_cuts AS c
    ON c.tenant_id = p.tenant_id AND c.pool_kind = p.pool_kind AND c.pool_id = p.pool_id
ORDER BY p.tenant_id, p.pool_kind, p.pool_id
LIMIT 1

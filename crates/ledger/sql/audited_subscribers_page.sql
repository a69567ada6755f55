-- Reads the last subscriber of a page of subscribers with an audit record. $1 tenant, $2 user, $3 subscribers of a page
SELECT MAX(page.pool_id)
FROM (
    SELECT DISTINCT pool_id FROM audit_log
    WHERE tenant_id = $1 AND pool_kind = 'subscriber' AND pool_id > $2
    ORDER BY pool_id
    LIMIT $3
) AS page

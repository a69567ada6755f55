-- Reads the last subscriber of the first page of homes in a lost region. $1 lost region, $2 homes of a page
SELECT page.tenant_id, page.user_id
FROM (
    SELECT tenant_id, user_id FROM homes WHERE region = $1
    ORDER BY tenant_id, user_id
    LIMIT $2
) AS page
ORDER BY page.tenant_id DESC, page.user_id DESC
LIMIT 1

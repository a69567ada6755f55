-- Reads the first page of homes in a lost region. $1 lost region, $2 homes of a page
SELECT tenant_id, user_id FROM homes WHERE region = $1
ORDER BY tenant_id, user_id
LIMIT $2

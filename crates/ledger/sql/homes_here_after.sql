-- Reads a page of the homes in this region, in the order of the last change. $1 this region, $2 time, $3 tenant and $4 user
-- of the last home of the page before, $5 rows
SELECT tenant_id, user_id, region, version, state, since, admits_from FROM known_homes
WHERE region = $1 AND state = 'here' AND (since, tenant_id, user_id) > ($2, $3, $4)
ORDER BY since, tenant_id, user_id
LIMIT $5

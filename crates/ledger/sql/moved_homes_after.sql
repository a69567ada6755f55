-- Reads a page of the homes that have moved or are about to leave this region, in the order of their last change. $1
-- time, $2 tenant and $3 user of the last home of the page before, $4 rows
SELECT tenant_id, user_id, region, version, state, since, admits_from FROM known_homes
WHERE version > 1 AND (since, tenant_id, user_id) > ($1, $2, $3)
ORDER BY since, tenant_id, user_id
LIMIT $4

-- Reads a page of all homes known here, after a subscriber. $1 tenant, $2 user, $3 rows
SELECT tenant_id, user_id, region, version, state, since, seq, admits_from FROM known_homes
WHERE (tenant_id, user_id) > ($1, $2)
ORDER BY tenant_id, user_id
LIMIT $3

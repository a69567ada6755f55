-- Reads the home of a subscriber. $1 tenant, $2 user
SELECT tenant_id, user_id, region, version, state, since, seq, admits_from FROM known_homes
WHERE tenant_id = $1 AND user_id = $2

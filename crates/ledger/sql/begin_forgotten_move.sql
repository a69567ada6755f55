-- Begins again the move of a home that this ledger has forgotten. $1 tenant, $2 user, $3 target region, $4 region of this
-- ledger, $5 time, $6 number of the pool's last event, $7 version of the home in the target
UPDATE homes
SET region = $3, version = $7, state = 'moving', since = $5, seq = $6
WHERE tenant_id = $1 AND user_id = $2 AND state = 'here' AND region = $4 AND version < $7

-- Begins the move of a home that is here. $1 tenant, $2 user, $3 target region, $4 region of this ledger, $5 time,
-- $6 number of the pool's last event
UPDATE homes
SET region = $3, version = version + 1, state = 'moving', since = $5, seq = $6
WHERE tenant_id = $1 AND user_id = $2 AND state = 'here' AND region = $4

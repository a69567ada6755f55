-- Ends the move of a home out of this region. $1 tenant, $2 user, $3 version, $4 time
UPDATE homes SET state = 'moved', since = $4
WHERE tenant_id = $1 AND user_id = $2 AND version = $3 AND state = 'moving'

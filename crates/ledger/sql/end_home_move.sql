-- Ends the move of a home out of this region. The target is compared, because the successor of a lost target takes its
-- place. $1 tenant, $2 user, $3 version, $4 time, $5 target
UPDATE homes SET state = 'moved', since = $4
WHERE tenant_id = $1 AND user_id = $2 AND version = $3 AND region = $5 AND state = 'moving'

-- Reads the kept sessions of a lost region's pool. $1 tenant, $2 pool kind, $3 pool
SELECT record FROM arriving_sessions WHERE tenant_id = $1 AND pool_kind = $2 AND pool_id = $3

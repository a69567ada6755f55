-- Reads the home region of a subscriber. $1 tenant, $2 user
SELECT region FROM homes WHERE tenant_id = $1 AND user_id = $2

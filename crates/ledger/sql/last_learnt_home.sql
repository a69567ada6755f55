-- Reads the position up to which another region has told its homes. $1 the region
SELECT since, tenant_id, user_id FROM learnt_homes WHERE region = $1

-- Reads the position up to which a peer region has told its homes. $1 the peer
SELECT since, tenant_id, user_id FROM learnt_homes WHERE region = $1

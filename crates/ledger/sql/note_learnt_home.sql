-- Records the position up to which a peer region has told its homes. $1 the peer, $2 time, $3 tenant, $4 user
INSERT INTO learnt_homes (region, since, tenant_id, user_id)
VALUES ($1, $2, $3, $4)
ON CONFLICT (region) DO UPDATE
SET since = excluded.since, tenant_id = excluded.tenant_id, user_id = excluded.user_id

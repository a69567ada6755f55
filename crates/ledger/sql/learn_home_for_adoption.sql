-- Records a newer home of a subscriber, told to the successor of a lost region. A home in this region stays. A home on its
-- way from here is replaced by a version above the open move: the target of the move took the home over, and the home has
-- left the target since. $1 tenant, $2 user, $3 region, $4 version, $5 time, $6 this region
INSERT INTO homes (tenant_id, user_id, region, version, state, since)
VALUES ($1, $2, $3, $4, 'here', $5)
ON CONFLICT (tenant_id, user_id) DO UPDATE
SET region = excluded.region, version = excluded.version, state = 'here', since = excluded.since, seq = NULL
WHERE homes.version < excluded.version AND NOT (homes.state = 'here' AND homes.region = $6)

-- Records a newer home of a subscriber, told by another region. An older version never replaces a newer version, and a
-- home in the course of a move is not replaced. $1 tenant, $2 user, $3 region, $4 version, $5 time
INSERT INTO homes (tenant_id, user_id, region, version, state, since)
VALUES ($1, $2, $3, $4, 'here', $5)
ON CONFLICT (tenant_id, user_id) DO UPDATE
SET region = excluded.region, version = excluded.version, state = 'here', since = excluded.since
WHERE homes.version < excluded.version AND homes.state <> 'moving'

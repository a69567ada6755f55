-- Records a newer home of a subscriber, told by another region. An older version never replaces a newer version, and a
-- home in the course of a move is not replaced, and neither is a home in this region: such a home leaves by a move of
-- this region alone. $1 tenant, $2 user, $3 region, $4 version, $5 time, $6 this region
INSERT INTO homes (tenant_id, user_id, region, version, state, since)
VALUES ($1, $2, $3, $4, 'here', $5)
ON CONFLICT (tenant_id, user_id) DO UPDATE
SET region = excluded.region, version = excluded.version, state = 'here', since = excluded.since
WHERE homes.version < excluded.version AND homes.state <> 'moving' AND NOT (homes.state = 'here' AND homes.region = $6)

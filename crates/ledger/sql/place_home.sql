-- Places a home in this region, by a newer version. A home on its way out of this region stays, unless its target is a
-- lost region. $1 tenant, $2 user, $3 region of this ledger, $4 version, $5 time, $6 time from which the home admits,
-- $7 lost region
INSERT INTO homes (tenant_id, user_id, region, version, state, since, admits_from)
VALUES ($1, $2, $3, $4, 'here', $5, $6)
ON CONFLICT (tenant_id, user_id) DO UPDATE
SET region = excluded.region, version = excluded.version, state = 'here', since = excluded.since,
    admits_from = excluded.admits_from
WHERE homes.version < excluded.version AND (homes.state <> 'moving' OR homes.region = $7)

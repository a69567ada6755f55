-- Renews session $1 of bucket $2 and returns the new row, if the session is not over and the caller has the
-- right. Returns no row if the session is over or never existed, the caller has no right, or the bucket is
-- not served.
--   $3  the only kind of pool in the caller's reach; null: any
--   $4  the caller's tenant
--   $5  the only user whose sessions the caller may touch in the tenant; null: any
--   $6  the caller's name in other tenants; null: no right in other tenants
--   $7  the epoch in which the node serves the bucket
-- The answer to a license's holder tells the interval of heartbeats (`PoolKind::tells_interval`). Any other holder,
-- and a session with several users, keeps a TTL that is longer than the pool's. The time is read before the wait for a
-- concurrent change of the session, and last_heartbeat never goes back.
UPDATE registry.sessions s
SET last_heartbeat = greatest(s.last_heartbeat, t.now),
    ttl = CASE WHEN p.kind = 'license' AND cardinality(s.users) = 1 THEN coalesce(p.ttl, s.ttl)
        ELSE greatest(p.ttl, s.ttl) END
FROM registry.pools p, (
    SELECT greatest(CASE WHEN c.clock <= d.trusted_until THEN c.clock END, b.latest, registry.told_in(b.bucket, d))
        AS now
    FROM registry.buckets b, registry.told d, (SELECT registry.clock() AS clock OFFSET 0) c
    WHERE b.bucket = $2 AND b.serving AND b.epoch = $7
) t
WHERE s.id = $1 AND p.pool = s.pool AND p.bucket = $2
    AND s.last_heartbeat > t.now - s.ttl AND (p.ends_at IS NULL OR p.ends_at > t.now)
    AND ($3::text IS NULL OR p.kind = $3)
    AND CASE WHEN p.tenant = $4 THEN $5::text IS NULL OR $5 = ANY (s.users)
        ELSE $6::text IS NOT NULL AND $6 = ANY (s.users) END
RETURNING s.id, s.holder, s.users, s.started, s.last_heartbeat, s.ttl, s.tier,
    p.kind, p.tenant, p.name, p.ends_at, t.now

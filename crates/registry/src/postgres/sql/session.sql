-- Reads session $1 of bucket $2 with columns of its pool, at the bucket's time, without a lock. Always
-- returns a row: the bucket alone if the session does not exist.
SELECT b.epoch, b.serving, l.*,
    greatest(CASE WHEN c.clock <= t.trusted_until THEN c.clock END, b.latest, registry.told_in(b.bucket, t)) AS now
FROM (SELECT registry.clock() AS clock OFFSET 0) c, registry.told t, registry.buckets b LEFT JOIN LATERAL (
    SELECT s.id, s.holder, s.users, s.started, s.last_heartbeat, s.ttl, s.tier,
        p.kind, p.tenant, p.name, p.ends_at
    FROM registry.sessions s JOIN registry.pools p USING (pool)
    WHERE s.id = $1 AND p.bucket = $2
) l ON true
WHERE b.bucket = $2

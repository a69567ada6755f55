-- The sessions of bucket $1 that were renewed after the time $2, while the bucket is served. A look at each entry of
-- its pools in the index, so no heartbeat pays for it.
SELECT r.id, r.last_heartbeat
FROM registry.buckets b, LATERAL (
    SELECT p.pool FROM registry.pools p WHERE p.bucket = $1 OFFSET 0
) p, LATERAL (
    SELECT s.id, s.last_heartbeat FROM registry.sessions s
    WHERE s.pool = p.pool AND s.last_heartbeat > $2 OFFSET 0
) r
WHERE b.bucket = $1 AND b.serving

-- Reads the sessions of served bucket $1 renewed after time $2. The query scans the index entries of the
-- bucket's pools, so that heartbeats maintain no further index.
SELECT r.id, r.last_heartbeat, r.ttl
FROM registry.buckets b, LATERAL (
    SELECT p.pool FROM registry.pools p WHERE p.bucket = $1 OFFSET 0
) p, LATERAL (
    SELECT s.id, s.last_heartbeat, s.ttl FROM registry.sessions s
    WHERE s.pool = p.pool AND s.last_heartbeat > $2 OFFSET 0
) r
WHERE b.bucket = $1 AND b.serving

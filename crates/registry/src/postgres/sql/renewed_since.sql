-- The sessions of bucket $1 that were renewed after the time $2, while the bucket is served.
SELECT s.id, s.last_heartbeat FROM registry.pools p JOIN registry.sessions s USING (pool)
WHERE p.bucket = $1 AND EXISTS (SELECT FROM registry.buckets b WHERE b.bucket = $1 AND b.serving)
    AND s.last_heartbeat > $2

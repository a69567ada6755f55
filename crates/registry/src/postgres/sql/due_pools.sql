-- The pools of bucket $1 that are due at the time of the bucket, the first first, at most $2, and whether the bucket
-- is served. Always one row: where nothing is due, the bucket alone.
SELECT b.epoch, b.serving, d.kind, d.tenant, d.name
FROM registry.buckets b LEFT JOIN LATERAL (
    SELECT p.kind, p.tenant, p.name FROM registry.pools p
    WHERE p.bucket = $1 AND p.due <= (SELECT registry.time_in($1))
    ORDER BY p.due LIMIT $2
) d ON true
WHERE b.bucket = $1

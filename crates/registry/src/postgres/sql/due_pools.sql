-- Reads the due pools of bucket $1 by the bucket's time, the earliest first, at most $2, and the serving
-- state. Always returns a row: the bucket alone if no pool is due.
SELECT b.epoch, b.serving, d.kind, d.tenant, d.name
FROM registry.buckets b LEFT JOIN LATERAL (
    SELECT p.kind, p.tenant, p.name FROM registry.pools p
    WHERE p.bucket = $1 AND p.due <= (SELECT registry.time_in($1))
    ORDER BY p.due LIMIT $2
) d ON true
WHERE b.bucket = $1

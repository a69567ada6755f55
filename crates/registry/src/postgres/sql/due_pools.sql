-- The pools of bucket $1 that are due at the time of the bucket, the first first, at most $2.
SELECT kind, tenant, name FROM registry.pools
WHERE bucket = $1 AND due <= registry.time_in($1)
ORDER BY due LIMIT $2

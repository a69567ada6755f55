-- Reads the time of bucket $1 if the pool of kind $2, tenant $3 and name $4 is closed; null if the pool is open.
SELECT CASE
    WHEN NOT EXISTS (SELECT FROM registry.pools p WHERE p.tenant = $3 AND p.name = $4 AND p.kind = $2)
    THEN registry.time_in($1)
END

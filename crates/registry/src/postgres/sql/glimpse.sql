-- Reads a pool for a decision without the bucket's lock: see registry.glimpse. A session of another bucket
-- counts as missing.
SELECT * FROM registry.glimpse($1, $2, $3, $4, (
    SELECT s.id FROM registry.sessions s JOIN registry.pools p USING (pool) WHERE s.id = $5 AND p.bucket = $1
), $6, $7, $8)

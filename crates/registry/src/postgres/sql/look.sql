-- Reads a pool for a decision, and holds the bucket's lock until the end of the transaction: see
-- registry.look. A session of another bucket counts as missing.
SELECT * FROM registry.look($1, $2, $3, $4, (
    SELECT s.id FROM registry.sessions s JOIN registry.pools p USING (pool) WHERE s.id = $5 AND p.bucket = $1
), $6, $7, $8)

-- Adds a key of release codes. Of several nodes that add the same generation, one succeeds.
-- $1 generation, $2 secret, $3 time
INSERT INTO release_keys (generation, secret, made_at)
VALUES ($1, $2, $3)
ON CONFLICT (generation) DO NOTHING

-- Adds a key of release codes. If several nodes add a generation, the first insert wins.
-- $1 generation, $2 secret, $3 time
INSERT INTO release_keys (generation, secret, made_at)
VALUES ($1, $2, $3)
ON CONFLICT (generation) DO NOTHING

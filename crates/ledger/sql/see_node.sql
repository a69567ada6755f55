-- Inserts or updates the row of a live node (an upsert).
-- $1 node, $2 name, $3 now, $4 unreachable buckets, a bit per bucket, $5 named nodes, 16 bytes each
INSERT INTO nodes (id, name, seen_at, unreachable, named)
VALUES ($1, $2, $3, $4, $5)
ON CONFLICT (id) DO UPDATE
SET name = excluded.name, seen_at = excluded.seen_at, unreachable = excluded.unreachable, named = excluded.named

-- Reads the earliest time at which bucket $1 needs a sweep (null if the bucket has no pool), and the serving
-- state.
SELECT b.epoch, b.serving, (SELECT min(p.due) FROM registry.pools p WHERE p.bucket = b.bucket) AS due
FROM registry.buckets b WHERE b.bucket = $1

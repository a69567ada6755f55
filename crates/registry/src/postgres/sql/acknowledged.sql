-- Reads the acknowledged positions of the buckets $1. A position belongs to the epoch for which the bucket was
-- filled: a rebuild that has begun raises the epoch, and keeps the positions until the bucket is cleared.
SELECT a.bucket, b.filled_for AS epoch, a.position
FROM registry.acknowledged a JOIN registry.buckets b USING (bucket)
WHERE a.bucket = ANY ($1)

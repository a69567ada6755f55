-- Reads the acknowledged positions of the buckets $1.
SELECT a.bucket, b.epoch, a.position
FROM registry.acknowledged a JOIN registry.buckets b USING (bucket)
WHERE a.bucket = ANY ($1)

-- How each bucket is.
SELECT bucket, epoch, serving FROM registry.buckets ORDER BY bucket

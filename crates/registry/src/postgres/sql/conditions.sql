-- How each bucket from $1 on is, a section of them.
SELECT bucket, epoch, serving FROM registry.buckets WHERE bucket BETWEEN $1 AND $1 + 255 ORDER BY bucket

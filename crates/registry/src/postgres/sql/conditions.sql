-- Reads the state of each bucket of the section that starts at $1.
SELECT bucket, epoch, serving FROM registry.buckets WHERE bucket BETWEEN $1 AND $1 + 255 ORDER BY bucket

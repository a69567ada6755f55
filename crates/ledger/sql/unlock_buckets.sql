-- Gives one's own locks of buckets back. `/* rows */` stands for one group (bucket, who) a bucket.
DELETE FROM bucket_locks WHERE (bucket, locked_by) IN (VALUES /* rows */)

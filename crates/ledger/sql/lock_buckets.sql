-- Takes the locks of buckets that are nobody's, over, or one's own.
-- `/* rows */` stands for one group (bucket, who, now, until) a bucket.
INSERT INTO bucket_locks (bucket, locked_by, locked_at, locked_until)
VALUES /* rows */
ON CONFLICT (bucket) DO UPDATE
SET locked_by = excluded.locked_by, locked_at = excluded.locked_at, locked_until = excluded.locked_until
WHERE bucket_locks.locked_by = excluded.locked_by OR bucket_locks.locked_until <= excluded.locked_at
RETURNING bucket

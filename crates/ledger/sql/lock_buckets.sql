-- Takes the locks of buckets without a lock, with an expired lock, or with a lock of the same node.
-- `/* rows */` stands for a group (bucket, node, now, locked until) per bucket.
INSERT INTO bucket_locks (bucket, locked_by, locked_at, locked_until)
VALUES /* rows */
ON CONFLICT (bucket) DO UPDATE
SET locked_by = excluded.locked_by, locked_at = excluded.locked_at, locked_until = excluded.locked_until
WHERE bucket_locks.locked_by = excluded.locked_by OR bucket_locks.locked_until <= excluded.locked_at
RETURNING bucket

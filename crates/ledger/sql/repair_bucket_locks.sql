-- Releases the locks of all buckets. No node is live during a repair of registry time.
DELETE FROM bucket_locks

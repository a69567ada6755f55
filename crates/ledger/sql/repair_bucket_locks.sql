-- Gives the locks of all buckets back: no node is live.
DELETE FROM bucket_locks

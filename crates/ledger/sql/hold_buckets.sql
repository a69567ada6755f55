-- Reads the epochs of buckets and locks the rows until the transaction ends. Meanwhile the epochs cannot
-- change, and no concurrent transaction records events of the buckets.
--
-- A reader relying only on an epoch locks `FOR KEY SHARE` and does not wait for the lock. Rows are locked in
-- bucket order to prevent deadlocks.
-- `/* rows */` stands for a group (bucket) per bucket.
SELECT id, epoch
FROM buckets
WHERE id IN (VALUES /* rows */)
ORDER BY id
FOR NO KEY UPDATE

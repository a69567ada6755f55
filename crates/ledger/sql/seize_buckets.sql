-- Locks the rows of buckets exclusively, even against readers relying only on an epoch. Rows are locked in
-- bucket order to prevent deadlocks.
-- `/* rows */` stands for a group (bucket) per bucket.
SELECT id
FROM buckets
WHERE id IN (VALUES /* rows */)
ORDER BY id
FOR UPDATE

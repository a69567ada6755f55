-- Locks the rows of some buckets against everybody, those included who only rely on an epoch, in the order of
-- the buckets. `/* rows */` stands for one group (bucket) a bucket.
SELECT id
FROM buckets
WHERE id IN (VALUES /* rows */)
ORDER BY id
FOR UPDATE

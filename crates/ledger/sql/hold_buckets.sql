-- The epochs of some buckets, whose rows stay locked until the transaction ends: the epochs stay as they are,
-- and nobody else puts events of these buckets on record meanwhile. Who only relies on an epoch locks a row
-- FOR KEY SHARE, and does not wait for this. Locked in the order of the buckets, so that of two who want the
-- same ones none waits for ever. `/* rows */` stands for one group (bucket) a bucket.
SELECT id, epoch
FROM buckets
WHERE id IN (VALUES /* rows */)
ORDER BY id
FOR NO KEY UPDATE

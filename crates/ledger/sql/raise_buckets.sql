-- Raises the epochs of buckets that are at the one given, with the mode and the registry that are theirs from
-- then on. `/* rows */` stands for one group (bucket, epoch, mode, registry identity) a bucket.
UPDATE buckets
SET epoch = epoch + 1, mode = seen.column3, registry_identity = seen.column4
FROM (VALUES /* rows */) AS seen
WHERE buckets.id = seen.column1 AND buckets.epoch = seen.column2
RETURNING id

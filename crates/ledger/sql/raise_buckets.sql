-- Raises the epochs of buckets that are at the one given, with the mode and the registry that are theirs from
-- then on. `/* rows */` stands for one group (bucket, epoch, next epoch, mode, registry identity) a bucket.
UPDATE buckets
SET epoch = seen.column3, mode = seen.column4, registry_identity = seen.column5,
    ledger_identity = (SELECT identity FROM this_ledger)
FROM (VALUES /* rows */) AS seen
WHERE buckets.id = seen.column1 AND buckets.epoch = seen.column2
RETURNING id

-- Raises the epochs of buckets still at an expected epoch, and sets their mode and registry (a
-- compare-and-swap).
-- `/* rows */` stands for a group (bucket, expected epoch, next epoch, mode, registry identity) per bucket.
UPDATE buckets
SET epoch = seen.column3, mode = seen.column4, registry_identity = seen.column5,
    ledger_identity = (SELECT identity FROM this_ledger)
FROM (VALUES /* rows */) AS seen
WHERE buckets.id = seen.column1 AND buckets.epoch = seen.column2
RETURNING id

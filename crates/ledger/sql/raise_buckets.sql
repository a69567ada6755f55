-- Raises the epochs of buckets still at an expected epoch, and sets their mode and registry (a
-- compare-and-swap). Returns the journal that the rebuild of each bucket replays.
--
-- If the bucket's epoch has an unreplayed journal before it, no registry has served the epoch: the same journal is
-- still to be replayed. Otherwise it is the journal of the bucket's epoch.
-- `/* rows */` stands for a group (bucket, expected epoch, next epoch, mode, registry identity) per bucket.
UPDATE buckets
SET epoch = seen.column3, mode = seen.column4, registry_identity = seen.column5,
    ledger_identity = (SELECT identity FROM this_ledger),
    unreplayed_epoch = COALESCE(unreplayed_epoch, epoch),
    unreplayed_mode = COALESCE(unreplayed_mode, mode),
    lower_mode = CASE
        WHEN unreplayed_epoch IS NULL THEN NULL
        WHEN mode = 'registry' OR lower_mode = 'deny' THEN lower_mode
        ELSE mode
    END
FROM (VALUES /* rows */) AS seen
WHERE buckets.id = seen.column1 AND buckets.epoch = seen.column2
RETURNING id, epoch, unreplayed_epoch, unreplayed_mode, lower_mode

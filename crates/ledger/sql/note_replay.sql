-- Notes that the journal before an epoch is replayed, unless the bucket's epoch has changed.
-- $1 bucket, $2 epoch
UPDATE buckets
SET unreplayed_epoch = NULL, unreplayed_mode = NULL, lower_mode = NULL
WHERE id = $1 AND epoch = $2

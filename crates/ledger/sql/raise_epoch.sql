-- Raises the epochs of all buckets to a common epoch, which must be greater than every epoch before, and sets their
-- registry. No journal is left to replay: the registry's memory is new.
-- $1 registry identity, $2 epoch
UPDATE buckets
SET epoch = $2, mode = 'registry', registry_identity = $1,
    ledger_identity = (SELECT identity FROM this_ledger),
    unreplayed_epoch = NULL, unreplayed_mode = NULL, lower_mode = NULL

-- Raises the epochs of all buckets to a common epoch greater than every epoch before, and sets their
-- registry. No journal is left to replay: the registry's memory is new.
-- $1 registry identity
UPDATE buckets
SET epoch = (SELECT MAX(epoch) FROM buckets) + 1, mode = 'registry', registry_identity = $1,
    ledger_identity = (SELECT identity FROM this_ledger),
    unreplayed_epoch = NULL, unreplayed_mode = NULL, lower_mode = NULL
RETURNING epoch

-- Raises the epoch of every bucket to one that none had, and notes which registry serves them.
-- $1 registry identity
UPDATE buckets
SET epoch = (SELECT MAX(epoch) FROM buckets) + 1, mode = 'registry', registry_identity = $1,
    ledger_identity = (SELECT identity FROM this_ledger)
RETURNING epoch

-- Returns whether every bucket has the epoch and the registry of a process, raised in this ledger. Returns no row on a
-- standby, whose identity is not that of its primary.
-- $1 epoch, $2 registry identity
SELECT NOT EXISTS (
    SELECT 1 FROM buckets
    WHERE epoch <> $1 OR registry_identity IS DISTINCT FROM $2
       OR ledger_identity IS DISTINCT FROM (SELECT identity FROM this_ledger)
)
WHERE NOT pg_is_in_recovery()

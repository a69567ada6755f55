-- Returns whether no bucket has the registry of a process that used the ledger alone.
-- $1 pattern of the identities of such registries
SELECT NOT EXISTS (SELECT 1 FROM buckets WHERE registry_identity LIKE $1)

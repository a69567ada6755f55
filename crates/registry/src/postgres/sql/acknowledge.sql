-- Deletes the events of bucket $1 up to a position that the ledger has: see registry.acknowledge.
SELECT registry.acknowledge($1, $2, $3)

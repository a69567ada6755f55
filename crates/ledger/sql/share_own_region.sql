-- Locks the region of the ledger until the transaction ends: meanwhile no adoption comes on record.
SELECT region FROM own_region WHERE id = 1
FOR SHARE

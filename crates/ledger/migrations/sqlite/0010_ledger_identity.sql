-- The ledger in which the epoch of each bucket was raised. A file is one ledger wherever it is copied to.
ALTER TABLE buckets ADD COLUMN ledger_identity TEXT;

CREATE VIEW this_ledger AS SELECT 'file' AS identity;

-- Counts the promoted standbys and restored backups on record.
SELECT COUNT(*) FROM ledger_copies

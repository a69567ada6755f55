-- Counts the copies of the ledger that took its place, each found by its identity.
SELECT COUNT(*) FROM ledger_copies

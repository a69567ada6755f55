-- Reads the times at which this ledger was found to be a copy.
SELECT noted_at FROM ledger_copies ORDER BY noted_at

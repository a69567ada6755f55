-- Reads the region of this ledger.
SELECT region FROM own_region

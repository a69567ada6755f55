-- Returns the lowest versions of the changes made in each promoted standby or restored backup on record.
SELECT version_floor FROM ledger_copies ORDER BY version_floor

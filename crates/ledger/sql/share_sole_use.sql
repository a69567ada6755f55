-- Returns FALSE while a process uses the ledger alone. Otherwise no process begins to do so before the transaction ends.
SELECT pg_try_advisory_xact_lock_shared(8315159439655396720)

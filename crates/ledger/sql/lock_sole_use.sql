-- Takes the lock of the one process that uses the ledger alone, until the connection ends. PostgreSQL frees the lock of a
-- killed process at once, and of a lost machine by keepalives. Returns FALSE if another connection has the lock, or
-- shares it for a moment.
SELECT pg_try_advisory_lock(8315159439655396720)

-- Locks license $1 until the end of the transaction, so that concurrent counts of its sessions wait.
SELECT key FROM licenses WHERE key = $1 FOR UPDATE

-- Nobody else counts the sessions of license $1 until this transaction is over.
SELECT key FROM licenses WHERE key = $1 FOR UPDATE

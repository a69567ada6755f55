-- Nobody else counts the sessions of license $1 until this transaction is over.
SELECT seats FROM licenses WHERE id = $1 FOR UPDATE

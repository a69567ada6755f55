-- Locks the region of the ledger until the transaction ends: meanwhile no home arrives by a move. The row of a new adoption
-- cannot be locked before it exists.
SELECT region FROM own_region WHERE id = 1
FOR NO KEY UPDATE

-- Reads the time from which the successor of a lost region admits, and locks the row until the transaction ends: a begin that
-- moves the time waits, and so does a page of the end, which then finds the homes of this transaction. $1 lost region
SELECT admits_from, is_done FROM region_adoptions WHERE lost = $1
FOR SHARE

-- Reads the time from which the successor of a lost region admits, and locks the row until the transaction ends: a later begin
-- and a page of the end wait, and then find the homes of this transaction. $1 lost region
SELECT admits_from, is_done FROM region_adoptions WHERE lost = $1
FOR SHARE

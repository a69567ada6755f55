-- Reads the adoption of a lost region and locks the row until the transaction ends: meanwhile no begin moves the time of
-- the adoption, and no home takes the time over. $1 lost region
SELECT lost, successor, admits_from, is_done, audit_head FROM region_adoptions WHERE lost = $1
FOR NO KEY UPDATE

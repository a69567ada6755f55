-- Marks an adoption as done. $1 lost region
UPDATE region_adoptions SET is_done = 1 WHERE lost = $1

-- Moves the time from which the successor of a lost region admits, until the end of the adoption. The time counts for the
-- homes taken over before as well: view `known_homes` reads the later time. $1 lost region, $2 successor, $3 time from which
-- the successor admits
UPDATE region_adoptions SET admits_from = $3
WHERE lost = $1 AND successor = $2 AND is_done = 0 AND admits_from < $3

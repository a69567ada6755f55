-- Deletes the keys of release codes before a generation. $1 generation
DELETE FROM release_keys
WHERE generation < $1

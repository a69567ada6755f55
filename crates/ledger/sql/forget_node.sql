-- Deletes a node last seen before a time. $1 node, $2 time
DELETE FROM nodes WHERE id = $1 AND seen_at < $2

-- $1 node, $2 only if it was last seen before this
DELETE FROM nodes WHERE id = $1 AND seen_at < $2

-- Deletes a node that has not been seen again since a time. A node that is seen at the same moment keeps its row.
-- $1 node, $2 time when the node was last seen
DELETE FROM nodes WHERE id = $1 AND seen_at = $2

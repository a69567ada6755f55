-- All nodes, those included that have not been seen for a while.
SELECT id, name, seen_at, unreachable FROM nodes ORDER BY id

-- Reads all nodes, including nodes silent for a while.
SELECT id, name, seen_at, unreachable FROM nodes ORDER BY id

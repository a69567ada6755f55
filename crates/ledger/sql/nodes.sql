-- Reads all nodes, including nodes silent for a while.
SELECT id, name, seen_at, unreachable, named FROM nodes ORDER BY id

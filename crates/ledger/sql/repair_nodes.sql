-- Forgets all nodes: none of them is live.
DELETE FROM nodes

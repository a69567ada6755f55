-- Deletes all nodes. No node is live during a repair of registry time.
DELETE FROM nodes

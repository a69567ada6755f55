-- Identifies the database: see registry.identity.
SELECT registry.identity()

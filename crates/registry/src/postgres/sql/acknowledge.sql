-- Forgets the events of a bucket up to a place; see registry.acknowledge.
SELECT registry.acknowledge($1, $2, $3)

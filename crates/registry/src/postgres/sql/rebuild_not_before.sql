-- Raises the time of bucket $1 under rebuild for epoch $2 to at least $3: see registry.rebuild_not_before.
SELECT registry.rebuild_not_before($1, $2, $3)

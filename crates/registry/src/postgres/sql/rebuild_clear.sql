-- Clears bucket $1 under rebuild for epoch $2: see registry.rebuild_clear.
SELECT registry.rebuild_clear($1, $2)

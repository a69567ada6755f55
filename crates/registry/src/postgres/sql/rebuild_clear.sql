-- Empties bucket $1, which is being rebuilt for epoch $2; see registry.rebuild_clear.
SELECT registry.rebuild_clear($1, $2)

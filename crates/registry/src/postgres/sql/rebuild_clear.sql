-- Clears bucket $1 under rebuild for epoch $2, not earlier than $3 from now on: see registry.rebuild_clear.
SELECT registry.rebuild_clear($1, $2, $3)

-- Stops serving bucket $1 for a rebuild of epoch $2: see registry.rebuild_begin.
SELECT registry.rebuild_begin($1, $2)

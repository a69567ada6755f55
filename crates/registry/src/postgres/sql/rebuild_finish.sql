-- Serves bucket $1 after a rebuild for epoch $2: see registry.rebuild_finish.
SELECT registry.rebuild_finish($1, $2)

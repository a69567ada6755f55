-- Serves bucket $1, which was rebuilt for epoch $2; see registry.rebuild_finish.
SELECT registry.rebuild_finish($1, $2)

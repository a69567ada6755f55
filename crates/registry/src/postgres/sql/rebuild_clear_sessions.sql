-- Deletes at most $3 sessions of bucket $1 under rebuild for epoch $2: see registry.rebuild_clear_sessions.
SELECT registry.rebuild_clear_sessions($1, $2, $3)

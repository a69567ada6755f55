-- Renews at most $2 sessions after session $1, while time stands still: see registry.renew_ahead.
SELECT last_id, sessions FROM registry.renew_ahead($1, $2, $3, $4)

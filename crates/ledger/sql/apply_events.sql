-- Applies a batch of events in one call. Migration `0002_apply_events.sql` documents the arguments and the result.
SELECT apply_events($1, $2, $3, $4, $5, $6, $7)

-- Stages a batch of a window not yet on record, due at once.
-- $1 batch, $2 start of the window, $3 tenant, $4 number, $5 records, $6 millionths of a unit, $7 end of the
-- window
INSERT INTO usage_outbox (
    id, window_starts_at, tenant_id, batch, records, micro_units, state, attempts, next_attempt_at
)
VALUES ($1, $2, $3, $4, $5, $6, 'pending', 0, $7)

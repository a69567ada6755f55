-- Adds a batch. The batch is staged as long as its window is not on record.
-- $1 batch, $2 start of the window, $3 tenant, $4 number, $5 records, $6 millionths of a unit, $7 due time
INSERT INTO usage_outbox (
    id, window_starts_at, tenant_id, batch, records, micro_units, state, attempts, not_found, may_be_stored,
    next_attempt_at
)
VALUES ($1, $2, $3, $4, $5, $6, 'pending', 0, 0, 0, $7)

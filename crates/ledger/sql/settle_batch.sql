-- Records the result of an attempt to deliver a batch. Only a pending batch changes.
-- $1 batch, $2 state, $3 next attempt, $4 status, $5 error, $6 delivered at, $7 1: the sink may have the batch
UPDATE usage_outbox
SET state = $2, attempts = attempts + 1, next_attempt_at = $3, last_status = $4, last_error = $5,
    delivered_at = $6, not_found = CASE WHEN $4 = 404 THEN not_found + 1 ELSE 0 END,
    may_be_stored = may_be_stored | $7
WHERE id = $1 AND state = 'pending'

-- Makes a dead batch pending again and resets its attempts. The last status and error stay readable.
-- $1 tenant, $2 batch, $3 now
UPDATE usage_outbox
SET state = 'pending', attempts = 0, not_found = 0, next_attempt_at = $3
WHERE id = $2 AND tenant_id = $1 AND state = 'dead'

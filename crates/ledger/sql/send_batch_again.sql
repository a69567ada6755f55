-- Puts a dead batch on its way again, as if it had never been tried; what it was last told stays to be
-- read. $1 tenant, $2 batch, $3 now
UPDATE usage_outbox
SET state = 'pending', attempts = 0, next_attempt_at = $3
WHERE id = $2 AND tenant_id = $1 AND state = 'dead'

-- Reads the latest due time of a pending batch.
SELECT MAX(next_attempt_at) FROM usage_outbox WHERE state = 'pending'

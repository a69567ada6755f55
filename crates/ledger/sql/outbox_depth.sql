-- Counts the usage batches waiting for delivery.
SELECT COUNT(*)
FROM usage_outbox
WHERE state = 'pending'

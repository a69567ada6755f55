-- Counts the usage batches that the sink has refused for good.
SELECT COUNT(*)
FROM usage_outbox
WHERE state = 'dead'

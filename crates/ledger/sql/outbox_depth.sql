-- How many batches of usage wait for their receiver.
SELECT COUNT(*)
FROM usage_outbox
WHERE state = 'pending'

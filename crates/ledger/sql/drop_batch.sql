-- Deletes a batch. $1 batch
DELETE FROM usage_outbox WHERE id = $1

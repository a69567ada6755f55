-- Deletes the payload of a batch. $1 batch
DELETE FROM usage_payloads WHERE batch_id = $1

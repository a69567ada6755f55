-- Forgets what a batch says. $1 batch
DELETE FROM usage_payloads WHERE batch_id = $1

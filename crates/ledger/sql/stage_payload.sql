-- Adds the payload of a batch. $1 batch, $2 payload
INSERT INTO usage_payloads (batch_id, payload) VALUES ($1, $2)

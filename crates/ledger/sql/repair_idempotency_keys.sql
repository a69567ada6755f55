-- Dates every idempotency key $1 at the latest, so that each key reaches the age for its purge.
UPDATE idempotency_keys SET at = $1 WHERE at > $1

-- Lets no idempotency key be younger than $1, so that each of them grows old in time.
UPDATE idempotency_keys SET at = $1 WHERE at > $1

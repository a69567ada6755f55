-- Lets every batch of usage that is due after $1 be due at $1.
UPDATE usage_outbox SET next_attempt_at = $1 WHERE state = 'pending' AND next_attempt_at > $1

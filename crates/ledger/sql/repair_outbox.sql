-- Makes every pending usage batch due at $1 at the latest.
UPDATE usage_outbox SET next_attempt_at = $1 WHERE state = 'pending' AND next_attempt_at > $1

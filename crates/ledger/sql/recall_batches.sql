-- Makes at most $3 pending batches that are due after $2 due at $1.
UPDATE usage_outbox
SET next_attempt_at = $1
WHERE id IN (
    SELECT id
    FROM usage_outbox
    WHERE state = 'pending' AND next_attempt_at > $2
    LIMIT $3
)

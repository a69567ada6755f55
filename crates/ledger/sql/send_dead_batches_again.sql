-- Makes at most $5 dead batches of a tenant pending again, in the order of windows and numbers, after a position. The
-- last status and error stay readable.
-- $1 tenant, $2 now, $3 start of the position's window, $4 number of the position, $5 maximum number of batches
UPDATE usage_outbox
SET state = 'pending', attempts = 0, not_found = 0, next_attempt_at = $2
WHERE state = 'dead' AND id IN (
    SELECT o.id
    FROM usage_outbox AS o
    WHERE o.tenant_id = $1 AND o.state = 'dead' AND (o.window_starts_at, o.batch) > ($3, $4)
    ORDER BY o.window_starts_at, o.batch
    LIMIT $5
)
RETURNING window_starts_at, batch

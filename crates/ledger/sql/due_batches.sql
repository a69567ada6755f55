-- Reads the batches due at $1 with their payloads, longest due first, after a position in the order.
-- $1 now, $2 due time of the position, $3 batch of the position, $4 maximum number of batches
SELECT o.id, o.tenant_id, o.window_starts_at, w.ends_at AS window_ends_at, o.attempts, o.not_found,
    o.may_be_stored, o.next_attempt_at, p.payload
FROM usage_outbox AS o
INNER JOIN usage_windows AS w ON w.starts_at = o.window_starts_at
INNER JOIN usage_payloads AS p ON p.batch_id = o.id
WHERE o.state = 'pending' AND o.next_attempt_at <= $1 AND (o.next_attempt_at, o.id) > ($2, $3)
ORDER BY o.next_attempt_at, o.id
LIMIT $4

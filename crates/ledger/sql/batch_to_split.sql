-- Reads a pending batch to be split, with its payload, and of the tenant's batches of the window: the highest number,
-- how many there are, and how many are delivered.
-- $1 batch
SELECT o.tenant_id, o.window_starts_at, p.payload, (
    SELECT MAX(w.batch)
    FROM usage_outbox AS w
    WHERE w.window_starts_at = o.window_starts_at AND w.tenant_id = o.tenant_id
) AS last_batch, (
    SELECT COUNT(*)
    FROM usage_outbox AS w
    WHERE w.window_starts_at = o.window_starts_at AND w.tenant_id = o.tenant_id
) AS batches, (
    SELECT COUNT(*)
    FROM usage_outbox AS w
    WHERE w.window_starts_at = o.window_starts_at AND w.tenant_id = o.tenant_id AND w.state = 'delivered'
) AS delivered
FROM usage_outbox AS o
INNER JOIN usage_payloads AS p ON p.batch_id = o.id
WHERE o.id = $1 AND o.state = 'pending'

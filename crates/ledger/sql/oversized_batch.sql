-- Reads a pending batch to be split, with its payload and the highest number of the tenant's batches of the window.
-- $1 batch
SELECT o.tenant_id, o.window_starts_at, p.payload, (
    SELECT MAX(last.batch)
    FROM usage_outbox AS last
    WHERE last.window_starts_at = o.window_starts_at AND last.tenant_id = o.tenant_id
) AS last_batch
FROM usage_outbox AS o
INNER JOIN usage_payloads AS p ON p.batch_id = o.id
WHERE o.id = $1 AND o.state = 'pending'

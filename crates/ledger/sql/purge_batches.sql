-- Deletes at most $2 delivered batches of windows that ended before $1. While the tenant has an undelivered batch in the
-- window, the delivered batches stay: the number of splits of a refused batch depends on the delivered batches.
DELETE FROM usage_outbox
WHERE id IN (
    SELECT o.id
    FROM usage_outbox AS o
    INNER JOIN usage_windows AS w ON w.starts_at = o.window_starts_at
    WHERE o.window_starts_at < $1 AND o.state = 'delivered' AND w.ends_at < $1
      AND NOT EXISTS (
        SELECT 1
        FROM usage_outbox AS waits
        WHERE waits.window_starts_at = o.window_starts_at AND waits.tenant_id = o.tenant_id AND waits.state <> 'delivered'
      )
    LIMIT $2
)

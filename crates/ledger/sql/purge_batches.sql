-- Deletes at most $2 delivered batches of windows that ended before $1.
DELETE FROM usage_outbox
WHERE id IN (
    SELECT o.id
    FROM usage_outbox AS o
    INNER JOIN usage_windows AS w ON w.starts_at = o.window_starts_at
    WHERE o.window_starts_at < $1 AND o.state = 'delivered' AND w.ends_at < $1
    LIMIT $2
)

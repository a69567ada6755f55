-- Deletes at most $2 windows that ended before $1 and have no batches left. The last window stays, because
-- the next window starts at its end.
DELETE FROM usage_windows
WHERE starts_at IN (
    SELECT w.starts_at
    FROM usage_windows AS w
    WHERE w.ends_at < $1
      AND w.ends_at < (SELECT MAX(ends_at) FROM usage_windows)
      AND NOT EXISTS (SELECT 1 FROM usage_outbox AS o WHERE o.window_starts_at = w.starts_at)
    LIMIT $2
)

-- Batches without a window: staged by an emission that did not come to its end. A window starts at the
-- end of the last one or, being the first, anywhere. $1 how many at most
SELECT id
FROM usage_outbox
WHERE window_starts_at >= COALESCE((SELECT MAX(ends_at) FROM usage_windows), '1970-01-01T00:00:00+00:00')
LIMIT $1

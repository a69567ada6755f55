-- Reads the staged batches of an interrupted emission: batches whose window starts at or after the end of the
-- last window on record, or all batches without a window on record. $1 maximum number of batches
SELECT id
FROM usage_outbox
WHERE window_starts_at >= COALESCE((SELECT MAX(ends_at) FROM usage_windows), '1970-01-01T00:00:00+00:00')
LIMIT $1

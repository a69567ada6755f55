-- Puts a window on record and with it its staged batches, if it follows on the last one.
-- $1 its start, $2 its end
INSERT INTO usage_windows (starts_at, ends_at, records, micro_units)
SELECT $1, $2, SUM(records), SUM(micro_units)
FROM usage_outbox
WHERE window_starts_at = $1
HAVING COALESCE((SELECT MAX(ends_at) FROM usage_windows), $1) = $1

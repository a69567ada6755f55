-- Adds a window for its staged batches, if the window follows the last window. The batches count from then
-- on.
-- $1 start of the window, $2 end of the window
INSERT INTO usage_windows (starts_at, ends_at, records, micro_units)
SELECT $1, $2, SUM(records), SUM(micro_units)
FROM usage_outbox
WHERE window_starts_at = $1
HAVING COALESCE((SELECT MAX(ends_at) FROM usage_windows), $1) = $1

-- Adds a window for its staged batches, if the window follows the last window, all records are staged, and the
-- sink knows no windows of another ledger. The batches count from then on.
-- $1 start of the window, $2 end of the window, $3 records
INSERT INTO usage_windows (starts_at, ends_at, records, micro_units)
SELECT $1, $2, $3, COALESCE(SUM(micro_units), 0)
FROM usage_outbox
WHERE window_starts_at = $1
HAVING COALESCE((SELECT MAX(ends_at) FROM usage_windows), $1) = $1
   AND CAST(COALESCE(SUM(records), 0) AS BIGINT) = $3
   AND (SELECT identity FROM usage_ledger) = (SELECT identity FROM this_ledger)

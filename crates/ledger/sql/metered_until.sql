-- The end of the last window on record.
SELECT MAX(ends_at) AS ends_at FROM usage_windows

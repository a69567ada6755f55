-- Reads the end of the last usage window on record.
SELECT MAX(ends_at) AS ends_at FROM usage_windows

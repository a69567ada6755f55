-- Ends session $1, unless it has already ended.
UPDATE sessions SET ended_at = clock_timestamp() WHERE id = $1 AND ended_at IS NULL

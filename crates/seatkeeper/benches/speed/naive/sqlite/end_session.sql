-- Ends session $1, unless it has already ended.
UPDATE sessions SET ended_at = strftime('%Y-%m-%dT%H:%M:%fZ', 'now') WHERE id = $1 AND ended_at IS NULL

-- Where the next window starts: where the last one ended; the first one at the earliest start of a
-- capacity's session on record.
SELECT COALESCE(
    (SELECT MAX(ends_at) FROM usage_windows),
    (
        SELECT MIN(started_at)
        FROM (
            SELECT started_at FROM sessions WHERE pool_kind = 'capacity' AND end_reason IS NULL
            UNION ALL
            SELECT started_at FROM sessions WHERE pool_kind = 'capacity' AND end_reason IS NOT NULL
        ) AS metered
    )
) AS starts_at

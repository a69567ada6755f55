-- The first start of a capacity's session at $1 or later.
SELECT MIN(started_at) AS starts_at
FROM (
    SELECT started_at FROM sessions WHERE pool_kind = 'capacity' AND end_reason IS NULL AND started_at >= $1
    UNION ALL
    SELECT started_at
    FROM sessions
    WHERE pool_kind = 'capacity' AND end_reason IS NOT NULL AND ended_at > $1 AND started_at >= $1
) AS metered

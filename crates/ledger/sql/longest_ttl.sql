-- Reads the longest TTL of a license, a plan or a live session with heartbeats, in milliseconds; 0 without any.
SELECT CAST(COALESCE(MAX(ttl), 0) AS BIGINT)
FROM (
    SELECT MAX(ttl_seconds) * 1000 AS ttl FROM licenses
    UNION ALL
    SELECT MAX(ttl_seconds) * 1000 FROM plans
    UNION ALL
    SELECT MAX(ttl_ms) FROM sessions WHERE ended_at IS NULL AND pool_kind <> 'capacity'
) AS ttls

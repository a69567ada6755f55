-- Reads each window that starts within a span, oldest first, with a tenant's usage summed by state of the batches.
-- `MIN(w.ends_at)` is the window's only end: the aggregate keeps the groups in index order.
-- $1 tenant, $2 start of the span, $3 end of the span, $4 maximum number of windows
SELECT w.starts_at AS window_starts_at, MIN(w.ends_at) AS window_ends_at,
    CAST(COALESCE(SUM(CASE WHEN o.state = 'pending' THEN o.micro_units END), 0) AS BIGINT) AS pending,
    CAST(COALESCE(SUM(CASE WHEN o.state = 'delivered' THEN o.micro_units END), 0) AS BIGINT) AS delivered,
    CAST(COALESCE(SUM(CASE WHEN o.state = 'dead' THEN o.micro_units END), 0) AS BIGINT) AS dead
FROM usage_windows AS w
LEFT JOIN usage_outbox AS o ON o.window_starts_at = w.starts_at AND o.tenant_id = $1
WHERE w.starts_at >= $2 AND w.starts_at < $3
GROUP BY w.starts_at
ORDER BY w.starts_at
LIMIT $4

-- Reads the windows that start within a span with usage of a tenant, newest first, with the usage summed by
-- state of the batches. `MIN(w.ends_at)` is the window's only end: the aggregate keeps the groups in index
-- order, so the query reads no more batches than the page needs.
-- $1 tenant, $2 start of the span, $3 end of the span, $4 starting before, $5 maximum number of windows
SELECT o.window_starts_at, MIN(w.ends_at) AS window_ends_at,
    CAST(SUM(o.records) AS BIGINT) AS records,
    CAST(COALESCE(SUM(CASE WHEN o.state = 'pending' THEN o.micro_units END), 0) AS BIGINT) AS pending,
    CAST(COALESCE(SUM(CASE WHEN o.state = 'delivered' THEN o.micro_units END), 0) AS BIGINT) AS delivered,
    CAST(COALESCE(SUM(CASE WHEN o.state = 'dead' THEN o.micro_units END), 0) AS BIGINT) AS dead
FROM usage_outbox AS o
INNER JOIN usage_windows AS w ON w.starts_at = o.window_starts_at
WHERE o.tenant_id = $1 AND o.window_starts_at >= $2 AND o.window_starts_at < $3 AND o.window_starts_at < $4
GROUP BY o.window_starts_at
ORDER BY o.window_starts_at DESC
LIMIT $5

-- Reads about $1 of the oldest events that the ledger lacks, of the section that starts at bucket $2. Each
-- bucket with waiting events gets an equal share, so that a long journal delays no other. The events of the
-- buckets $3 are left out. A bucket without events to return has a row without a position. Each row has the
-- total of waiting events.
WITH waiting AS MATERIALIZED (
    SELECT b.bucket, b.epoch, a.position AS acknowledged, b.position AS last, b.bucket <> ALL ($3) AS is_read
    FROM registry.buckets b JOIN registry.acknowledged a USING (bucket)
    WHERE b.bucket BETWEEN $2 AND $2 + 255 AND b.position > a.position AND b.serving
),
total AS MATERIALIZED (
    SELECT count(*) FILTER (WHERE is_read) AS buckets, sum(last - acknowledged)::bigint AS events FROM waiting
)
SELECT w.bucket, w.epoch, w.acknowledged, w.last, j.position, j.event, t.events AS depth
FROM total t CROSS JOIN waiting w LEFT JOIN LATERAL (
    SELECT * FROM registry.journal x
    WHERE w.is_read AND x.bucket = w.bucket AND x.position > w.acknowledged
    ORDER BY x.position LIMIT ($1 + t.buckets - 1) / nullif(t.buckets, 0)
) j ON true
ORDER BY w.bucket, j.position

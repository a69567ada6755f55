-- Reads about $1 of the oldest events that the ledger lacks, of the section that starts at bucket $2. Each
-- bucket with waiting events gets an equal share, so that a long journal delays no other. Each row has the
-- total of waiting events.
WITH waiting AS MATERIALIZED (
    SELECT b.bucket, b.epoch, a.position AS acknowledged, b.position - a.position AS events
    FROM registry.buckets b JOIN registry.acknowledged a USING (bucket)
    WHERE b.bucket BETWEEN $2 AND $2 + 255 AND b.position > a.position AND b.serving
),
total AS MATERIALIZED (
    SELECT count(*) AS buckets, sum(events)::bigint AS events FROM waiting
)
SELECT w.bucket, w.epoch, j.position, j.event, t.events AS depth
FROM total t, waiting w, LATERAL (
    SELECT * FROM registry.journal x
    WHERE x.bucket = w.bucket AND x.position > w.acknowledged
    ORDER BY x.position LIMIT ($1 + t.buckets - 1) / t.buckets
) j
ORDER BY w.bucket, j.position

-- The oldest events of the buckets from $2 on, a section of them, that the ledger does not have, at most about $1: an
-- equal share of each bucket in which any wait, so that a bucket with very many holds up no other's. Besides, in each
-- row, how many wait in all.
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

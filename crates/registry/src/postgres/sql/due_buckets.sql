-- Reads one row for the section that starts at bucket $1: the number of events that wait for the ledger, the
-- served buckets with due pools, and the epochs of these buckets.
SELECT coalesce(sum(b.position - a.position), 0)::bigint AS depth,
    coalesce(array_agg(b.bucket) FILTER (WHERE d.is_due), '{}') AS buckets,
    coalesce(array_agg(b.epoch) FILTER (WHERE d.is_due), '{}') AS epochs
FROM registry.buckets b
    JOIN registry.acknowledged a USING (bucket)
    CROSS JOIN registry.told t
    CROSS JOIN (SELECT registry.clock() AS clock OFFSET 0) c
    CROSS JOIN LATERAL (
        SELECT b.serving AND (SELECT min(p.due) FROM registry.pools p WHERE p.bucket = b.bucket)
            <= greatest(CASE WHEN c.clock <= t.trusted_until THEN c.clock END, b.latest, registry.told_in(b.bucket, t))
            AS is_due
    ) d
WHERE b.bucket BETWEEN $1 AND $1 + 255

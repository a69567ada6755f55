-- Counts the events that wait for the ledger, in the section that starts at bucket $1.
SELECT coalesce(sum(b.position - a.position), 0)::bigint
FROM registry.buckets b JOIN registry.acknowledged a USING (bucket)
WHERE b.bucket BETWEEN $1 AND $1 + 255

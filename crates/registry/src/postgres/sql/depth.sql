-- Counts the events of the section that starts at bucket $1 which wait for the ledger.
SELECT coalesce(sum(b.position - a.position), 0)::bigint
FROM registry.buckets b JOIN registry.acknowledged a USING (bucket)
WHERE b.bucket BETWEEN $1 AND $1 + 255

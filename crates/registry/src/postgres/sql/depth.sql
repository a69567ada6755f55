-- How many events wait for the ledger.
SELECT coalesce(sum(b.position - a.position), 0)::bigint
FROM registry.buckets b JOIN registry.acknowledged a USING (bucket)

-- Reads the first bucket, like buckets.sql. Returns no row on a standby, whose identity is not that of its primary.
SELECT id, epoch, mode, registry_identity,
       ledger_identity IS NOT DISTINCT FROM (SELECT identity FROM this_ledger) AS was_raised_here
FROM buckets
WHERE id = 0 AND NOT pg_is_in_recovery()

-- Reads all buckets in order.
SELECT id, epoch, mode, registry_identity,
       ledger_identity IS NOT DISTINCT FROM (SELECT identity FROM this_ledger) AS was_raised_here
FROM buckets
ORDER BY id

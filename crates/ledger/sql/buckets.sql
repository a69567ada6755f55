-- All buckets.
SELECT id, epoch, mode, registry_identity FROM buckets ORDER BY id

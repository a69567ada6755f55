-- Serves the lasting section, after its filling in this transaction.
UPDATE registry.buckets SET serving = true, fence = fence + 1 WHERE bucket >= 256

-- Serves the lasting section, after its filling in this transaction, and at a time not earlier than $1.
UPDATE registry.buckets SET serving = true, fence = fence + 1, latest = greatest(latest, $1) WHERE bucket >= 256

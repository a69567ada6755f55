-- Returns the greatest epoch of a bucket.
SELECT MAX(epoch) FROM buckets

-- Reads the epoch of a bucket. $1 bucket
SELECT epoch FROM buckets WHERE id = $1

-- The epoch of one bucket. $1 bucket
SELECT epoch FROM buckets WHERE id = $1

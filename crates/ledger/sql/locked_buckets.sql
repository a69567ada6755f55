-- Reads the buckets locked by a node. $1 node, $2 now
SELECT bucket FROM bucket_locks WHERE locked_by = $1 AND locked_until > $2

-- Reads the buckets that a node has locked. $1 node, $2 now
SELECT bucket FROM bucket_locks WHERE locked_by = $1 AND locked_until > $2

-- Reads the journal of bucket $1 under rebuild for epoch $2: see registry.rebuild_journal.
SELECT bucket, epoch, $3 AS acknowledged, position AS last, position, event, 0::bigint AS depth
FROM registry.rebuild_journal($1, $2, $3, $4)

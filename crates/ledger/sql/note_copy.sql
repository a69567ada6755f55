-- Records that this ledger is a copy, unless that is on record: some bucket was raised in another ledger. The versions of
-- its changes start at $2, or above the first 2^20 versions of the last copy on record.
-- $1 now, $2 the version of now
INSERT INTO ledger_copies (identity, noted_at, version_floor)
SELECT identity, $1, CASE WHEN $2 > above_last THEN $2 ELSE above_last END
FROM this_ledger, (SELECT COALESCE(MAX(version_floor), 0) + 1048576 AS above_last FROM ledger_copies) AS noted
WHERE EXISTS (SELECT 1 FROM buckets WHERE ledger_identity <> (SELECT identity FROM this_ledger))
ON CONFLICT (identity) DO NOTHING

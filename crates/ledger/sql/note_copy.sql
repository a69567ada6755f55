-- Records that this ledger is a copy, unless that is on record: some bucket was raised in another ledger.
-- $1 now
INSERT INTO ledger_copies (identity, noted_at)
SELECT identity, $1
FROM this_ledger
WHERE EXISTS (SELECT 1 FROM buckets WHERE ledger_identity <> (SELECT identity FROM this_ledger))
ON CONFLICT (identity) DO NOTHING

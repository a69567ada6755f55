-- Records that the sink knows the windows of this ledger, unless a ledger is on record.
INSERT INTO usage_ledger (id, identity)
SELECT 1, identity FROM this_ledger WHERE 1 = 1
ON CONFLICT (id) DO NOTHING

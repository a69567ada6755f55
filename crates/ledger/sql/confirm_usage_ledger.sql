-- Records that the sink knows the windows of this ledger and no others.
INSERT INTO usage_ledger (id, identity)
SELECT 1, identity FROM this_ledger WHERE 1 = 1
ON CONFLICT (id) DO UPDATE SET identity = excluded.identity

-- Reads the identity of this ledger, the identity of the ledger whose windows the sink knows, and whether this ledger is a
-- copy: noted as a copy, or with a bucket that was raised in another ledger.
SELECT present.identity AS present, metered.identity AS metered,
    EXISTS (SELECT 1 FROM ledger_copies AS copies WHERE copies.identity = present.identity)
    OR EXISTS (SELECT 1 FROM buckets AS raised WHERE raised.ledger_identity <> present.identity) AS is_copy
FROM this_ledger AS present
LEFT JOIN usage_ledger AS metered ON metered.id = 1

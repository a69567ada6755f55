-- Reads the identity of this ledger, the identity of the ledger with the windows known to the sink, and a flag for a copy:
-- a ledger noted as a copy, or with a bucket raised in the original.
SELECT present.identity AS present, metered.identity AS metered,
    EXISTS (SELECT 1 FROM ledger_copies AS copies WHERE copies.identity = present.identity)
    OR EXISTS (SELECT 1 FROM buckets AS raised WHERE raised.ledger_identity <> present.identity) AS is_copy
FROM this_ledger AS present
LEFT JOIN usage_ledger AS metered ON metered.id = 1

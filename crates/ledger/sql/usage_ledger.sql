-- Reads the identity of this ledger, and the identity of the ledger whose windows the sink knows.
SELECT present.identity AS present, metered.identity AS metered
FROM this_ledger AS present
LEFT JOIN usage_ledger AS metered ON metered.id = 1

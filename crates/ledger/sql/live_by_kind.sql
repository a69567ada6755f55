-- How many sessions are live on record, for each kind of pool that has any.
SELECT pool_kind, COUNT(*) AS live
FROM live_sessions
GROUP BY pool_kind

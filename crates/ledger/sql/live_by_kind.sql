-- Counts the live sessions on record for each kind of pool with live sessions.
SELECT pool_kind, COUNT(*) AS live
FROM live_sessions
GROUP BY pool_kind

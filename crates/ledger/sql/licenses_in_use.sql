-- Reads the licenses with the most live sessions on record, and the number of the sessions.
-- $1 maximum number of licenses
SELECT pool_id, COUNT(*) AS live
FROM live_sessions
WHERE pool_kind = 'license'
GROUP BY tenant_id, pool_id
ORDER BY live DESC, pool_id
LIMIT $1

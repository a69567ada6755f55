-- The licenses with the most live sessions on record, and how many those are. $1 how many licenses at most
SELECT pool_id, COUNT(*) AS live
FROM live_sessions
WHERE pool_kind = 'license'
GROUP BY tenant_id, pool_id
ORDER BY live DESC, pool_id
LIMIT $1

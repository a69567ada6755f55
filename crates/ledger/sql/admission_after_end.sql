-- Reads the first admission to a session's pool after the session's end. If the end made room for a claim,
-- the row is the admission of the claim.
-- $1 session id
SELECT a.session_id, a.device_type, a.device_name
FROM audit_log AS e
JOIN audit_log AS a
    ON a.tenant_id = e.tenant_id AND a.pool_kind = e.pool_kind AND a.pool_id = e.pool_id
   AND a.stream = 'session' AND a.seq > e.seq AND a.action = 'admitted'
WHERE e.session_id = $1 AND e.action = 'ended'
ORDER BY a.seq
LIMIT 1

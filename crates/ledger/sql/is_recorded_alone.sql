-- Whether what a node decided alone of a session is on record. $1 session id, $2 action
SELECT EXISTS (
    SELECT 1 FROM audit_log WHERE session_id = $1 AND action = $2 AND stream = 'node'
)

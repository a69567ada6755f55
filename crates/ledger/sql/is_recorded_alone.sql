-- Checks that an action of a node alone on a session is on record. $1 session id, $2 action
SELECT EXISTS (
    SELECT 1 FROM audit_log WHERE session_id = $1 AND action = $2 AND stream = 'node'
)

-- Appends an audit record: session $1, action $2.
INSERT INTO audit_log (at, session_id, action)
VALUES (strftime('%Y-%m-%dT%H:%M:%fZ', 'now'), $1, $2)

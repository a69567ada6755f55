INSERT INTO audit_log (at, session_id, action)
VALUES (strftime('%Y-%m-%dT%H:%M:%fZ', 'now'), $1, $2)

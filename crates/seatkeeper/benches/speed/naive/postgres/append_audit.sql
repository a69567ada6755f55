-- Appends an audit record: session $1, action $2.
INSERT INTO audit_log (at, session_id, action) VALUES (clock_timestamp(), $1, $2)

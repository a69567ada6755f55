INSERT INTO audit_log (at, session_id, action) VALUES (clock_timestamp(), $1, $2)

-- The registry time of the newest event of a session on record.
SELECT at FROM audit_log WHERE stream = 'session' ORDER BY at DESC LIMIT 1

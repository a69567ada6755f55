-- Reads the registry time of the newest session event on record.
SELECT at FROM audit_log WHERE stream = 'session' ORDER BY at DESC LIMIT 1

-- Reads the id of the newest record. Records appended later have greater ids.
SELECT COALESCE(MAX(id), 0) FROM audit_log

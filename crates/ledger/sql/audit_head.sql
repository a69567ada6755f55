-- The id of the newest record; records appended after this have greater ones.
SELECT COALESCE(MAX(id), 0) FROM audit_log

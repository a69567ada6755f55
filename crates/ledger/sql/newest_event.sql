-- Reads the registry time of the newest session event on record. `id > 0` is true of every row, and leads to the partial
-- index `audit_log_of_sessions_by_time`. With `ORDER BY at` in place of `MAX`, SQLite would read the rows by `id`.
SELECT MAX(at) AS at FROM audit_log WHERE stream = 'session' AND id > 0

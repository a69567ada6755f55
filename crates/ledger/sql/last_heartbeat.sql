-- Reads the latest heartbeat of all live sessions: a lookup per session id, because a join could scan every session
-- on record.
SELECT MAX((SELECT s.last_heartbeat_at FROM sessions AS s WHERE s.id = l.session_id)) AS at FROM live_sessions AS l

-- Returns whether there are more than $1 sessions.
SELECT count(*) > $1 FROM (SELECT FROM registry.sessions LIMIT $1 + 1) s

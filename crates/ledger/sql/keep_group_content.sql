-- Keeps the content of a member of a group. $1 member, $2 content, $3 differs since, $4 time
INSERT INTO group_contents (session_id, content_id, differs_since, at)
VALUES ($1, $2, $3, $4)
ON CONFLICT (session_id) DO UPDATE
SET content_id = excluded.content_id, differs_since = excluded.differs_since, at = excluded.at

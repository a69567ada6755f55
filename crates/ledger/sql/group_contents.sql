-- Reads the content of two members of a group. $1 member, $2 host
SELECT session_id, content_id, differs_since, at
FROM group_contents
WHERE session_id IN ($1, $2)

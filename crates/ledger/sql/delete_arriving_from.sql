-- Deletes a page of the sessions kept from a lost region. $1 lost region, $2 sessions of a page
DELETE FROM arriving_sessions
WHERE session_id IN (SELECT session_id FROM arriving_sessions WHERE lost = $1 LIMIT $2)

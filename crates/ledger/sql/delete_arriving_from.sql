-- Deletes the sessions that are still kept from a lost region. $1 lost region
DELETE FROM arriving_sessions WHERE lost = $1

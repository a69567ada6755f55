-- Leads the homes on their way to a lost region to its successor. $1 lost region, $2 successor
UPDATE homes SET region = $2 WHERE state = 'moving' AND region = $1

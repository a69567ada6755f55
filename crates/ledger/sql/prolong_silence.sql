-- Moves the time from which homes of an adoption admit. $1 this region, $2 earlier time, $3 later time
UPDATE homes SET admits_from = $3 WHERE state = 'here' AND region = $1 AND admits_from = $2

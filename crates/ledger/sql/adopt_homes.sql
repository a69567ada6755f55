-- Places every home that is still in a lost region in this region. $1 lost region, $2 this region, $3 time, $4 time from
-- which the homes admit
UPDATE homes
SET region = $2, version = version + 1, state = 'here', since = $3, seq = NULL, admits_from = $4
WHERE region = $1

-- Places the homes of a page of a lost region in this region. $1 lost region, $2 this region, $3 time, $4 time
-- from which the homes admit, $5 tenant and $6 user of the last home of the page
UPDATE homes
SET region = $2, version = version + 1, state = 'here', since = $3, seq = NULL, admits_from = $4
WHERE region = $1 AND (tenant_id, user_id) <= ($5, $6)

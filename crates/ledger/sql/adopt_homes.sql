-- Places the homes of a page of a lost region in this region. The range of rows leads PostgreSQL to index `homes_in_region`,
-- and past the rows of earlier pages. $1 lost region, $2 this region, $3 time, $4 time from which the homes admit, $5 tenant
-- and $6 user of the first home of the page, $7 tenant and $8 user of the last
UPDATE homes
SET region = $2, version = version + 1, state = 'here', since = $3, seq = NULL, admits_from = $4
WHERE (region, tenant_id, user_id) >= ($1, $5, $6) AND (region, tenant_id, user_id) <= ($1, $7, $8)

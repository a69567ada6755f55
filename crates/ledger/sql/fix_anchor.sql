-- Fixes the anchor region of a tenant, unless it is fixed, and returns the fixed region. $1 tenant, $2 region
UPDATE tenants SET anchor_region = COALESCE(anchor_region, $2) WHERE id = $1 RETURNING anchor_region

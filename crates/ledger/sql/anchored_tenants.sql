-- Reads the tenants whose anchor is a region, and the tenants without an anchor on record. $1 region
SELECT id, anchor_region FROM tenants WHERE anchor_region = $1 OR anchor_region IS NULL ORDER BY id

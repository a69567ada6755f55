-- Reads the anchor region of a tenant; NULL without an anchor on record. $1 tenant
SELECT anchor_region FROM tenants WHERE id = $1

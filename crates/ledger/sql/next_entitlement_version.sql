-- Takes the tenant's next version for a change of a plan or subscription. The row stays locked until the
-- transaction ends, so versions rise in commit order. $1 tenant
UPDATE tenants SET entitlement_version = entitlement_version + 1 WHERE id = $1 RETURNING entitlement_version

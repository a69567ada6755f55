-- Takes the tenant's next version for a change of a plan or subscription, at least $2. The row stays locked until the
-- transaction ends, so versions rise in commit order. $1 tenant
UPDATE tenants
SET entitlement_version = CASE WHEN entitlement_version + 1 < $2 THEN $2 ELSE entitlement_version + 1 END
WHERE id = $1
RETURNING entitlement_version

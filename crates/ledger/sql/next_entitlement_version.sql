-- Takes the next number for a change of the tenant's plans and subscriptions. The row stays locked until the
-- transaction ends, so the numbers rise in the order of commits. $1 tenant
UPDATE tenants SET entitlement_version = entitlement_version + 1 WHERE id = $1 RETURNING entitlement_version

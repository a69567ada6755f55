-- Reads the next tenant with an audit record, a session or a subscription (loose index scans). $1 tenant
SELECT MIN(tenant_id)
FROM (
    SELECT MIN(tenant_id) AS tenant_id FROM audit_log WHERE tenant_id > $1
    UNION ALL
    SELECT MIN(tenant_id) FROM audit_cuts WHERE tenant_id > $1
    UNION ALL
    SELECT MIN(tenant_id) FROM sessions WHERE tenant_id > $1
    UNION ALL
    SELECT MIN(tenant_id) FROM subscriptions WHERE tenant_id > $1
) AS known

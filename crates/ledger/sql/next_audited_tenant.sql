-- Reads the next tenant with an audit record (loose index scan). $1 tenant
SELECT MIN(tenant_id) FROM audit_log WHERE tenant_id > $1

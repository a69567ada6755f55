-- Locks a tenant's row until the transaction ends, so writes to a tenant run one after another. $1 tenant
SELECT id
FROM tenants
WHERE id = $1
FOR NO KEY UPDATE

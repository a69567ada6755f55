-- Keeps every other write to what a tenant owns waiting until the transaction ends. $1 tenant
SELECT id
FROM tenants
WHERE id = $1
FOR NO KEY UPDATE

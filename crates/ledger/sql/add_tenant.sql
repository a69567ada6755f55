-- Adds a tenant unless the tenant is known. $1 tenant, $2 time
INSERT INTO tenants (id, created_at) VALUES ($1, $2) ON CONFLICT (id) DO NOTHING

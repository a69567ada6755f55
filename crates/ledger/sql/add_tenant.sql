-- Notes a tenant the first time it is seen. $1 tenant, $2 time
INSERT INTO tenants (id, created_at) VALUES ($1, $2) ON CONFLICT (id) DO NOTHING

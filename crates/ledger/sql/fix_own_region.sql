-- Fixes the region of this ledger, unless it is fixed. $1 region
INSERT INTO own_region (id, region) VALUES (1, $1) ON CONFLICT (id) DO NOTHING

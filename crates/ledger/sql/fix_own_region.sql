-- Fixes the region and the deployment of the ledger, unless fixed before. $1 region, $2 deployment, $3 is confirmed
INSERT INTO own_region (id, region, deployment_id, is_confirmed, is_disputed) VALUES (1, $1, $2, $3, 0)
ON CONFLICT (id) DO UPDATE SET is_confirmed = 1
WHERE own_region.region = excluded.region AND excluded.is_confirmed = 1

-- Reads the region and the deployment of this ledger.
SELECT region, deployment_id, is_confirmed, refused_by, is_disputed FROM own_region

-- Reads the deployment on record of each peer region.
SELECT region, deployment_id FROM peer_deployments

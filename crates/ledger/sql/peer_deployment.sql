-- Reads the deployment on record of a peer region. $1 region
SELECT deployment_id FROM peer_deployments WHERE region = $1

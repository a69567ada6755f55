-- Forgets the deployment on record of a peer region. $1 region
DELETE FROM peer_deployments WHERE region = $1

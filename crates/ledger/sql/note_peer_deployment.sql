-- Records the deployment of a peer region, unless the peer has a deployment on record. $1 region, $2 deployment
INSERT INTO peer_deployments (region, deployment_id) VALUES ($1, $2) ON CONFLICT (region) DO NOTHING

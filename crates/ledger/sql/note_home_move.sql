-- Records a move of a home. $1 tenant, $2 user, $3 version, $4 direction, $5 the other region, $6 number of the pool's
-- last event in this region, $7 number of the pool's last event in the region left by an arrived home, $8 time
INSERT INTO home_moves (tenant_id, user_id, version, direction, peer, seq, peer_seq, at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
ON CONFLICT (tenant_id, user_id, version, direction) DO NOTHING

-- Records a move of a home. A forgotten move does not leave for a second time. $1 tenant, $2 user, $3 version, $4 direction, $5 the other region, $6 number of the pool's
-- last event in this region, $7 number of the pool's last event in the region left by an arrived home, $8 time
INSERT INTO home_moves (tenant_id, user_id, version, direction, peer, seq, peer_seq, at)
SELECT $1, $2, $3, $4, $5, $6, $7, $8
WHERE $4 <> 'left' OR NOT EXISTS (
    SELECT 1 FROM home_moves
    WHERE tenant_id = $1 AND user_id = $2 AND version = $3 AND direction = 'forgotten'
)
ON CONFLICT (tenant_id, user_id, version, direction) DO NOTHING

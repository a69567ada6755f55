-- Reads every move of a home into this region and out of this region.
SELECT tenant_id, user_id, version, direction, peer, seq, peer_seq FROM home_moves
ORDER BY tenant_id, user_id, version, direction
